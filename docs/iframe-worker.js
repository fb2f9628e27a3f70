// The search of pages opened from disk: browsers start no workers there, so a hidden frame plays the search's worker.
// The name is that of the package which the offline plugin would load from elsewhere.
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.url = new URL(url, location.href)
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.appendChild(frame)
      this.inner = frame.contentWindow
      this.inner.postMessage = (data) => setTimeout(() => {
        const event = new MessageEvent("message", { data })
        this.dispatchEvent(event)
        if (this.onmessage) this.onmessage(event)
      })
      this.inner.importScripts = (...urls) => 
        urls.reduce((before, one) => before.then(() => this.load(one)), Promise.resolve())
      this.ready = this.load(this.url)
    }
    load(url) {
      return new Promise((done, failed) => {
        const script = this.inner.document.createElement("script")
        Object.assign(script, { src: new URL(url, this.url), onload: done, onerror: failed })
        this.inner.document.body.appendChild(script)
      })
    }
    postMessage(data) {
      this.ready.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })))
    }
    terminate() {}
  }
}
