"""A window that shows frames, for `render_mode="human"`."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ...simulator.base.errors import InputError, MissingExtra
from .drawing.pen import INSTALL


class Window:
    """Shows one frame after the other; opens with the first.

    `fps`: frames a second at most, for which `show` waits; 0: it never waits. `is_open`: False once the user has closed
    it; `show` then does nothing.
    """

    def __init__(self, title: str = "clustergym", fps: float = 10) -> None:
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # it greets on stdout
        try:
            import pygame
        except ImportError:
            raise MissingExtra(f'render_mode "human" needs pygame; {INSTALL}') from None
        self.title = title
        self.fps = fps
        self.is_open = True
        self._pygame: Any = pygame
        self._screen: Any = None
        self._clock: Any = None

    def show(self, frame: np.ndarray) -> bool:
        """Show uint8 (height, width, 3), scaled to the window; returns whether it is open. InputError: no display."""
        if not self.is_open:
            return False
        size = (frame.shape[1], frame.shape[0])
        if self._screen is None:
            self._open(size)
        pygame = self._pygame
        for event in pygame.event.get():
            if event.type == pygame.QUIT:
                self.close()
                return False
        surface = pygame.image.frombuffer(np.ascontiguousarray(frame).tobytes(), size, "RGB")
        if self._screen.get_size() != size:
            surface = pygame.transform.smoothscale(surface, self._screen.get_size())
        self._screen.blit(surface, (0, 0))
        pygame.display.flip()
        if self.fps > 0:
            self._clock.tick(self.fps)
        return True

    def _open(self, size: tuple[int, int]) -> None:
        pygame = self._pygame
        try:
            pygame.display.init()
            self._screen = pygame.display.set_mode(size, pygame.RESIZABLE)
        except pygame.error as error:
            raise InputError(f'render_mode "human" cannot open a window ({error}); use "rgb_array" or "ansi"') from None
        pygame.display.set_caption(self.title)
        self._clock = pygame.time.Clock()

    def close(self) -> None:
        """Close the window, if there is one; it stays closed."""
        if self._screen is not None:
            self._pygame.display.quit()
            self._screen = None
        self.is_open = False
