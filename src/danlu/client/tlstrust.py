"""Whom a TLS client of ours believes: as clients written in Go do, so that what works with a cluster works here."""

from __future__ import annotations

import ssl


def trusting(bundle: bytes | str | None) -> ssl.SSLContext:
    """A context that trusts the certificates of `bundle` (PEM), or the machine's own authorities where there is none.

    Each certificate of a bundle is believed as it stands, also a server's own one, be it self-signed without CA:TRUE
    or issued by an authority that is not there: OpenSSL calls that a partial chain. Raises ssl.SSLError or ValueError.
    """
    text = bundle.decode() if isinstance(bundle, bytes) else bundle
    context = ssl.create_default_context(cadata=text or None)
    if text:
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    # Python 3.13 asks for extensions that the authorities of many clusters do not write.
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    return context
