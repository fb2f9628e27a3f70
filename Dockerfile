# docker build -t clustergym .                              simulator, policies, environments, command line
# docker build -t clustergym --build-arg EXTRAS=agents .    with an extra, or several: agents,render
# docker run --rm -v "$PWD:/work" clustergym evaluate Delay --policies "fifo las" --seeds 0-4
FROM python:3.11-slim
ARG EXTRAS=""
ARG PIP_FLAGS=""
# First what it needs, then itself with its kernels compiled: the image has them ready.
RUN --mount=type=bind,target=/source,rw \
    pip install --no-cache-dir $PIP_FLAGS -c /source/constraints.txt "/source${EXTRAS:+[$EXTRAS]}" "setuptools>=77" && \
    CLUSTERGYM_PREBUILT=1 pip install --no-cache-dir --no-build-isolation --no-deps --force-reinstall /source
RUN useradd --create-home clustergym && mkdir /work && chown clustergym /work
USER clustergym
WORKDIR /work
ENTRYPOINT ["clustergym"]
CMD ["--help"]
