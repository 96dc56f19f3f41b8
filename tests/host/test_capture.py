"""Output kept in bounded memory: whatever the chunks, the same first fifth, newest rest and totals."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from veil.host import capture
from veil.host.capture import Ring, Sink, whole_characters
from veil.model.outcome import Stream, read_from

LIMITS = st.integers(0, 60)
#: Text whose characters take one to four bytes, and bytes that are no text at all.
DATA = st.one_of(
    st.text(st.sampled_from("ab\n\x00é€😀"), max_size=60).map(str.encode),
    st.binary(max_size=120),
)


@st.composite
def chunked(draw: st.DrawFn) -> list[bytes]:
    data = draw(DATA)
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=8)))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def wanted(data: bytes, limit: int) -> Stream:
    lines = data.count(b"\n") + (data != b"" and not data.endswith(b"\n"))
    if len(data) <= limit:
        return Stream(data, b"", len(data), lines)
    head = limit // 5
    return Stream(data[:head], data[len(data) - (limit - head) :], len(data), lines)


def filled(chunks: list[bytes], limit: int) -> Ring:
    ring = Ring(limit)
    for chunk in chunks:
        assert ring.add(chunk) == chunk
    return ring


@given(chunked(), LIMITS)
def test_any_chunking_gives_the_same_stream(chunks: list[bytes], limit: int) -> None:
    ring = filled(chunks, limit)
    data = b"".join(chunks)
    assert ring.stream() == wanted(data, limit)
    assert ring.finish() == b""
    told = ring.stream()
    assert told == wanted(data, limit)
    assert (ring.total_bytes, ring.total_lines) == (len(data), told.total_lines)
    assert told.truncated == (len(data) > limit)
    assert told.dropped == max(0, len(data) - limit)


@given(st.integers(1, 300))
def test_exactly_the_limit_is_whole_and_one_more_is_not(limit: int) -> None:
    assert not filled([b"x" * limit], limit).stream().truncated
    over = filled([b"x" * limit, b"y"], limit).stream()
    assert (over.truncated, over.dropped, len(over.data)) == (True, 1, limit)
    assert over.data.endswith(b"y")


def test_what_overshoots_between_two_trims_is_bounded_and_never_kept() -> None:
    limit, piece = 1000, b"0123456789abcdef" * 4096
    ring = Ring(limit)
    sent = 0
    while sent < 5 * capture._SLACK:
        ring.add(piece[: 700 + sent % 90])  # never as long as the tail: those take another way
        sent += 700 + sent % 90
        assert len(ring.read(200).data) <= limit + capture._SLACK
    assert len(ring.stream().data) == limit
    assert ring.stream().total_bytes == sent


@given(st.lists(st.tuples(st.binary(max_size=40), st.integers(0, 3)), max_size=12), LIMITS)
def test_cursor_reads_are_gapless_or_say_so(turns: list[tuple[bytes, int]], limit: int) -> None:
    """A reader that comes now and then, while the stream grows and after its end."""
    ring, written, cursor = Ring(limit), b"", 0
    for data, reads in [*turns, (b"", -1)]:
        ring.add(data)
        written += data
        if reads < 0:
            ring.finish()
        for _ in range(reads if reads >= 0 else 5):
            piece = ring.read(cursor)
            start = piece.cursor - len(piece.data)
            assert piece.cursor >= cursor
            assert start >= cursor
            assert piece.data == written[start : piece.cursor], "never wrong bytes"
            assert piece.gap == (start > cursor)
            kept_from = len(written) - max(0, limit - limit // 5)
            assert not piece.gap or start <= max(kept_from, 0), "no more is called dropped than what was"
            cursor = piece.cursor
    assert cursor == len(written)
    assert ring.read(cursor) == (b"", cursor, False)
    assert ring.read(cursor + 7).data == b""


@given(st.text(max_size=40), st.lists(st.integers(0, 160), max_size=12))
def test_a_living_stream_never_gives_half_a_character(text: str, cuts: list[int]) -> None:
    data = text.encode("utf-8", "surrogatepass") if text.isascii() else text.encode("utf-8", "replace")
    ring, cursor, told = Ring(10_000), 0, ""
    ends = sorted({min(cut, len(data)) for cut in cuts} | {len(data)})
    for start, end in zip([0, *ends], ends, strict=False):
        ring.add(data[start:end])
        piece = ring.read(cursor)
        told += piece.data.decode("utf-8")  # strict: half a character would raise
        cursor = piece.cursor
        assert end - cursor < 4
    assert told.encode() == data
    assert cursor == len(data)


def test_half_a_character_comes_out_when_the_stream_ends() -> None:
    ring = filled([b"a\xe2\x82"], 100)
    assert ring.read(0) == (b"a", 1, False)
    ring.finish()
    assert ring.read(1) == (b"\xe2\x82", 3, False)


@given(st.binary(max_size=12))
def test_whole_characters_takes_off_an_unfinished_end_alone(data: bytes) -> None:
    kept = whole_characters(data)
    assert data.startswith(kept)
    cut = data[len(kept) :]
    assert len(cut) <= 3
    if cut:
        assert any(completes(cut, rest) for rest in (b"\x80", b"\x80\x80", b"\x80\x80\x80")), (
            "a beginning of a character"
        )
    assert whole_characters(kept + b"a") == kept + b"a"


def completes(start: bytes, rest: bytes) -> bool:
    need = {0b110: 2, 0b1110: 3, 0b11110: 4}
    length = next((n for mark, n in need.items() if start[0] >> (7 - n) == mark), 0)
    return len(start + rest) == length


@given(st.text(max_size=12), st.integers(0, 48))
def test_whole_characters_of_text(text: str, cut: int) -> None:
    data = text.encode("utf-8", "replace")[:cut]
    whole_characters(data).decode("utf-8")
    assert len(data) - len(whole_characters(data)) < 4
    assert whole_characters(text.encode("utf-8", "replace")) == text.encode("utf-8", "replace")


@given(chunked(), LIMITS, st.integers(0, 130))
def test_an_ended_stream_is_read_as_the_living_one_was(chunks: list[bytes], limit: int, cursor: int) -> None:
    ring = filled(chunks, limit)
    ring.finish()
    stream = ring.stream()
    from_record, from_ring = read_from(stream, cursor), ring.read(cursor)
    assert from_record.gap == from_ring.gap
    pieces, at = b"", cursor
    while at < stream.total_bytes:
        piece = read_from(stream, at)
        assert piece.cursor > at
        pieces, at = pieces + piece.data, piece.cursor
    if cursor <= len(stream.head) or not stream.truncated:
        assert pieces == stream.data[cursor:]


class Upper:
    """Rewrites, and holds the newest byte back."""

    def __init__(self) -> None:
        self.held = b""

    def feed(self, data: bytes) -> bytes:
        whole = self.held + data
        self.held = whole[-1:]
        return whole[:-1].upper()

    def finish(self) -> bytes:
        return self.held.upper()


@given(chunked(), LIMITS)
@settings(max_examples=50)
def test_a_filter_stands_before_everything(chunks: list[bytes], limit: int) -> None:
    heard: list[bytes] = []
    ring = Ring(limit, Upper())
    sink = Sink("stdout", ring, lambda name, data: heard.append(data))
    for chunk in chunks:
        sink.write(chunk)
    sink.close()
    data = b"".join(chunks).upper()
    assert ring.stream() == wanted(data, limit)
    assert b"".join(heard) == data
    assert ring.finish() == b"", "what was held back comes once"
    assert ring.total_bytes == len(data)
