"""From packets to pictures, with errors caught packet by packet, so that damage costs no more than it hit.

Used by the reader. It refuses nothing: what cannot be decoded is counted, and the next packet is tried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import av

if TYPE_CHECKING:
    from collections.abc import Iterator

    from av import VideoFrame
    from av.packet import Packet
    from av.video.stream import VideoStream

    from videoflow.media.decoding._opening import Opened
    from videoflow.media.decoding._seeking import StartPoint
    from videoflow.media.decoding._timeline import Place, Timeline

_READ_FAILURES = 16


class Decoder:
    """Decodes one video stream in presentation order.

    Args:
        opened: The container, at its beginning or placed by `go_to`.
        timeline: Where each picture gets its place.
        start: The key frame to start from; None for the beginning.

    Attributes:
        packets: Packets read, those before the start point included.
        read_error: Why reading broke off; empty when the container's end was reached.
        last_is_cut: True when the last packet is incomplete.
    """

    def __init__(self, opened: Opened, timeline: Timeline, start: StartPoint | None) -> None:
        self._opened = opened
        self._timeline = timeline
        self._start = start
        self.packets = 0 if start is None else start.packets_before
        self.read_error = ""
        self.last_is_cut = False

    def pictures(self) -> Iterator[tuple[VideoFrame, Place]]:
        """Yield each picture with its place, to the end of the file."""
        started = self._start is None
        for packet in self._whole_packets():
            started = started or self._is_start(packet)
            if not started:
                continue
            self.packets += 1
            leads = self._start is not None and packet.pts is not None and packet.pts < self._start.pts
            if not leads:
                self._timeline.admit(packet)
            yield from self._placed(packet)
        yield from self._placed(None)
        self._timeline.finish()

    def _is_start(self, packet: Packet[VideoStream]) -> bool:
        return self._start is not None and packet.is_keyframe and packet.pts == self._start.pts

    def _whole_packets(self) -> Iterator[Packet[VideoStream]]:
        """Yield the packets, without a last one that is cut: it would decode to a picture partly made up."""
        held: Packet[VideoStream] | None = None
        for packet in self._packets():
            if held is not None:
                yield held
            held = packet if packet.is_corrupt else None
            if held is None:
                yield packet
        if held is not None:
            self.packets += 1
            self.last_is_cut = True
            self._timeline.admit(held)

    def _packets(self) -> Iterator[Packet[VideoStream]]:
        failures = 0
        while failures < _READ_FAILURES:
            try:
                for packet in self._opened.container.demux(self._opened.stream):
                    if packet.size:
                        failures, self.read_error = 0, ""
                        yield packet
            except av.error.FFmpegError as error:
                failures += 1
                self.read_error = error.strerror or type(error).__name__
            else:
                return

    def _placed(self, packet: Packet[VideoStream] | None) -> Iterator[tuple[VideoFrame, Place]]:
        try:
            pictures = self._opened.stream.codec_context.decode(packet)
        except av.error.EOFError:
            return
        except av.error.FFmpegError:
            if packet is not None:
                self._timeline.lose(packet)
            return
        for picture in pictures:
            if self._start is not None and picture.pts is not None and picture.pts < self._start.pts:
                continue
            yield picture, self._timeline.place(picture.pts)
