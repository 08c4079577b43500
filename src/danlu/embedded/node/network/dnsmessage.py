"""DNS messages (RFC 1035), as far as a server for pods needs them: one question in, records out.

Names are text without the last dot, in lower case. What is not understood of a message raises `Malformed`; nothing here
does I/O.
"""

from __future__ import annotations

import enum
import ipaddress
import struct
from collections.abc import Sequence
from typing import NamedTuple

HEADER = struct.Struct("!HHHHHH")  # id, flags, how many questions, answers, authorities, additional
RECORD = struct.Struct("!HHIH")  # type, class, TTL in seconds, length of the data; a name stands before it
RESPONSE, AUTHORITATIVE, TRUNCATED, RECURSION_DESIRED, RECURSION_AVAILABLE = 0x8000, 0x0400, 0x0200, 0x0100, 0x0080
OPCODE = 0x7800
IN, ANY_CLASS = 1, 255
POINTER = 0xC0
TO_QUESTION = b"\xc0\x0c"  # the question's name always begins right behind the header
MOST_NAME, MOST_LABEL, MOST_POINTERS = 255, 63, 40
PLAIN_SIZE, LARGEST_SIZE = 512, 4096  # bytes of an answer by UDP: what all clients take, and the most that we send


class RecordType(enum.IntEnum):
    A = 1
    NS = 2
    CNAME = 5
    SOA = 6
    PTR = 12
    TXT = 16
    AAAA = 28
    SRV = 33
    OPT = 41
    ANY = 255


class Code(enum.IntEnum):
    NOERROR = 0
    FORMERR = 1
    SERVFAIL = 2
    NXDOMAIN = 3
    NOTIMP = 4
    REFUSED = 5


class Malformed(ValueError):
    """These bytes are no question that can be answered."""


class Question(NamedTuple):
    name: str
    type: int


class DnsQuery(NamedTuple):
    id: int
    flags: int
    question: Question
    raw_question: bytes  # as it came, for clients that mix cases (0x20) and compare
    size: int  # bytes that the client takes by UDP
    has_edns: bool


class DnsRecord(NamedTuple):
    name: str
    type: int
    ttl: int  # seconds
    data: bytes


class DnsAnswer(NamedTuple):
    code: Code = Code.NOERROR
    records: Sequence[DnsRecord] = ()
    authority: Sequence[DnsRecord] = ()
    additional: Sequence[DnsRecord] = ()
    authoritative: bool = True


# ---------------------------------------------------------------- reading


def read_query(message: bytes) -> DnsQuery:
    if len(message) < HEADER.size:
        raise Malformed("shorter than a header")
    id, flags, questions, answers, authorities, additional = HEADER.unpack_from(message)
    if flags & RESPONSE or questions != 1:
        raise Malformed("not one question")
    name, at = _read_name(message, HEADER.size)
    if at + 4 > len(message):
        raise Malformed("a question that is cut off")
    kind, kind_class = struct.unpack_from("!HH", message, at)
    if kind_class not in (IN, ANY_CLASS):
        raise Malformed("a class other than IN")
    raw, at = message[HEADER.size : at + 4], at + 4
    size, has_edns = PLAIN_SIZE, False
    for _ in range(min(answers + authorities + additional, MOST_POINTERS)):
        _, record_type, size_or_class, _, at = _read_record(message, at)
        if record_type == RecordType.OPT:
            size, has_edns = min(max(size_or_class, PLAIN_SIZE), LARGEST_SIZE), True
    return DnsQuery(id, flags, Question(name, kind), raw, size, has_edns)


def read_records(message: bytes) -> tuple[int, list[DnsRecord]]:
    """The code and the answers of a response, addresses and aliases only."""
    try:
        _, flags, questions, answers, _, _ = HEADER.unpack_from(message)
    except struct.error as error:
        raise Malformed("shorter than a header") from error
    at, found = HEADER.size, []
    for _ in range(questions):
        at = _read_name(message, at)[1] + 4
    for _ in range(answers):
        name, kind, _, ttl, end = _read_record(message, at)
        length = RECORD.unpack_from(message, _read_name(message, at)[1])[3]
        data = message[end - length : end]
        if kind == RecordType.CNAME:
            data = pack_name(_read_name(message, end - length)[0])
        if kind in (RecordType.A, RecordType.AAAA, RecordType.CNAME):
            found.append(DnsRecord(name, kind, ttl, data))
        at = end
    return flags & 0xF, found


def _read_record(message: bytes, at: int) -> tuple[str, int, int, int, int]:
    """(name, type, class, ttl, where the next one begins)."""
    name, at = _read_name(message, at)
    try:
        kind, kind_class, ttl, length = RECORD.unpack_from(message, at)
    except struct.error as error:
        raise Malformed("a record that is cut off") from error
    end = at + RECORD.size + length
    if end > len(message):
        raise Malformed("a record that is cut off")
    return name, kind, kind_class, ttl, end


def _read_name(message: bytes, at: int) -> tuple[str, int]:
    """(name, where what follows it begins)."""
    labels: list[str] = []
    total, end, pointers = 0, -1, 0
    while True:
        if at >= len(message):
            raise Malformed("a name that is cut off")
        length = message[at]
        if length & POINTER == POINTER:
            pointers += 1
            if at + 1 >= len(message) or pointers > MOST_POINTERS:
                raise Malformed("a name that leads nowhere")
            end = at + 2 if end < 0 else end
            at = (length & ~POINTER) << 8 | message[at + 1]
            continue
        total += length + 1
        if length > MOST_LABEL or total > MOST_NAME or at + 1 + length > len(message):
            raise Malformed("a name that is too long")
        at += 1
        if not length:
            return ".".join(labels), at if end < 0 else end
        # A dot inside a label must not make two of it.
        labels.append(message[at : at + length].decode("latin-1").lower().replace(".", "\\"))
        at += length


# ---------------------------------------------------------------- writing


def write_query(id: int, name: str, kind: int) -> bytes:
    return HEADER.pack(id, RECURSION_DESIRED, 1, 0, 0, 0) + pack_name(name) + struct.pack("!HH", kind, IN)


def write(query: DnsQuery, answer: DnsAnswer, size: int = 0) -> bytes:
    """The response; `size` is the most that it may have (0: no bound). What does not fit is left out, and said so."""
    sections = (answer.records, answer.authority, answer.additional)
    opt = b"\0" + RECORD.pack(RecordType.OPT, LARGEST_SIZE, 0, 0) if query.has_edns else b""
    body, counts, left = bytearray(query.raw_question), [0, 0, 0], size - HEADER.size - len(opt)
    truncated = 0
    for number, records in enumerate(sections):
        for record in records:
            packed = _pack(record, query.question.name)
            if size and len(body) + len(packed) > left:
                truncated = TRUNCATED if number < 2 else truncated  # additional records are an offer
                break
            body += packed
            counts[number] += 1
        if truncated:
            break
    flags = RESPONSE | RECURSION_AVAILABLE | (query.flags & (RECURSION_DESIRED | OPCODE)) | truncated | answer.code
    flags |= AUTHORITATIVE if answer.authoritative else 0
    return HEADER.pack(query.id, flags, 1, counts[0], counts[1], counts[2] + bool(opt)) + bytes(body) + opt


def write_error(message: bytes, code: Code) -> bytes:
    """To what could not be read; b"" when not even its header could."""
    if len(message) < HEADER.size or message[2] & 0x80:
        return b""
    id, flags = HEADER.unpack_from(message)[:2]
    return HEADER.pack(id, RESPONSE | (flags & (OPCODE | RECURSION_DESIRED)) | code, 0, 0, 0, 0)


def _pack(record: DnsRecord, question: str) -> bytes:
    name = TO_QUESTION if record.name == question else pack_name(record.name)
    return name + RECORD.pack(record.type, IN, record.ttl, len(record.data)) + record.data


def pack_name(name: str) -> bytes:
    labels = [label.encode("latin-1", "replace")[:MOST_LABEL] for label in name.rstrip(".").split(".") if label]
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def address(name: str, host: str, ttl: int) -> DnsRecord:
    ip = ipaddress.ip_address(host)
    return DnsRecord(name, RecordType.A if ip.version == 4 else RecordType.AAAA, ttl, ip.packed)


def service(name: str, target: str, port: int, weight: int, ttl: int) -> DnsRecord:
    return DnsRecord(name, RecordType.SRV, ttl, struct.pack("!HHH", 0, weight, port) + pack_name(target))


def text(name: str, said: str, ttl: int) -> DnsRecord:
    return DnsRecord(name, RecordType.TXT, ttl, bytes([len(said)]) + said.encode())
