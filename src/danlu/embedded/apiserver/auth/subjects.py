"""User and groups out of a client certificate, without a cryptography library.

TLS has verified the chain against our authority before this is called; what is left is to read the subject's common
name (the user) and organisations (the groups), which is a short walk through DER.
"""

from __future__ import annotations

_COMMON_NAME = bytes((0x55, 0x04, 0x03))
_ORGANIZATION = bytes((0x55, 0x04, 0x0A))
_SEQUENCE, _SET, _OID, _VERSION = 0x30, 0x31, 0x06, 0xA0
_UTF16_STRING = 0x1E


class BadCertificate(ValueError):
    """Not a certificate we can read."""


def _element(data: bytes, at: int) -> tuple[int, int, int]:
    """The element at `at`: its tag, where its content starts and where it ends."""
    try:
        tag, length = data[at], data[at + 1]
        at += 2
        if length & 0x80:
            count = length & 0x7F
            length = int.from_bytes(data[at : at + count], "big")
            at += count
    except IndexError:
        raise BadCertificate("the certificate ends early") from None
    if at + length > len(data):
        raise BadCertificate("the certificate ends early")
    return tag, at, at + length


def _inside(data: bytes, at: int, tag: int) -> tuple[int, int]:
    found, start, end = _element(data, at)
    if found != tag:
        raise BadCertificate(f"expected tag {tag:#x}, found {found:#x}")
    return start, end


def read_subject(der: bytes) -> tuple[str, tuple[str, ...]]:
    """(common name, organisations)"""
    at, _ = _inside(der, 0, _SEQUENCE)  # Certificate
    at, _ = _inside(der, at, _SEQUENCE)  # TBSCertificate
    tag, _, end = _element(der, at)
    if tag == _VERSION:
        at = end
    for _ in range(4):  # serial number, signature algorithm, issuer, validity
        at = _element(der, at)[2]
    at, subject_end = _inside(der, at, _SEQUENCE)
    common_name, organizations = "", []
    while at < subject_end:
        at, set_end = _inside(der, at, _SET)
        while at < set_end:
            at, pair_end = _inside(der, at, _SEQUENCE)
            start, end = _inside(der, at, _OID)
            oid = der[start:end]
            tag, start, end = _element(der, end)
            value = der[start:end].decode("utf-16-be" if tag == _UTF16_STRING else "utf-8", "replace")
            if oid == _COMMON_NAME:
                common_name = value
            elif oid == _ORGANIZATION:
                organizations.append(value)
            at = pair_end
    return common_name, tuple(organizations)
