"""This host's own trouble with files, as the failure that hands an item back unchanged."""

from __future__ import annotations

import errno

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.errors import DownloadFailed


def local_failure(error: OSError, what: str) -> DownloadFailed:
    """`DISK` if the file system is full, else `LOCAL_IO`; `what` names the file."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return DownloadFailed(Code.DISK if full else Code.LOCAL_IO, f"{what}: {error.strerror or error}")
