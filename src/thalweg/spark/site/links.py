"""The ends of links in a site's process: a sender for a fog's log, a receiver for the cloud's."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

from thalweg.errors import Defect, InvalidInput
from thalweg.spark.link import LinkError, LinkLate, open_link, parse_link
from thalweg.spark.link.receiver import LinkReceiver
from thalweg.spark.link.sender import LinkSender
from thalweg.spark.query.spec import QuerySpec

_RETRY_S = 1.0
_LOOK_S = 0.02
_GAP_S = 10.0
_CLOSE_TIMEOUT_S = 5.0


class LinkEnd:
    """The end of a link that a query needs: of role fog a sender, of role cloud a receiver.

    A link at which nobody answers is tried again until somebody does. The query need not wait for
    it: a site writes into its own log meanwhile. With `resend`, a sender sends everything again.
    What a receiver misses for long is an error that no receiver can mend: its sites have to send
    again what they sent, see `gaps` and `send_again`.
    """

    def __init__(self, query: QuerySpec, *, resend: bool = False) -> None:
        self._query = query
        self._resend = resend
        self._worker: LinkSender | LinkReceiver | None = None
        self._problem = "it is being opened"
        self._failure: str | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._open, name="link-opener", daemon=True)
        self._thread.start()

    @property
    def error(self) -> str | None:
        """Why it has ended, or cannot go on; nothing while it works or tries to."""
        worker = self._worker
        if worker is None:
            return self._failure
        if worker.error is not None:
            return f"the link {self._query.link} has ended: {worker.error}"
        return next(iter(self.gaps.values()), None)

    @property
    def gaps(self) -> dict[str, str]:
        """What a receiver has missed for long, by the site that sent it."""
        worker = self._worker
        return worker.lasting_gaps(_GAP_S) if isinstance(worker, LinkReceiver) else {}

    def send_again(self) -> None:
        """Have a sender send everything again, now or as soon as its link is there."""
        self._resend = True
        worker = self._worker
        if isinstance(worker, LinkSender):
            worker.send_again()

    def ship(self, epoch: int, batch: int, timeout_s: float) -> None:
        """Wait until all that the site has published up to a batch is safe with the link.

        Raises:
            LinkError: where it takes longer, or the link has ended.
        """
        deadline = time.monotonic() + timeout_s
        worker = self._opened(deadline)
        if isinstance(worker, LinkSender):
            worker.flush(epoch, batch, max(deadline - time.monotonic(), _RETRY_S))

    def await_arrival(self, site: str, epoch: int, batch: int, timeout_s: float) -> None:
        """Wait until all that a site had published up to a batch is in the cloud's log.

        Raises:
            LinkError: where it takes longer, or the link has ended.
        """
        deadline = time.monotonic() + timeout_s
        worker = self._opened(deadline)
        if isinstance(worker, LinkReceiver):
            worker.wait_for(site, epoch, batch, max(deadline - time.monotonic(), _RETRY_S))

    def close(self) -> None:
        """End the work after the present step; what is not sent by then is sent next time."""
        self._closing.set()
        self._thread.join(_CLOSE_TIMEOUT_S)
        if self._worker is not None:
            self._worker.close()

    def _open(self) -> None:
        while not self._closing.is_set():
            resend = self._resend
            try:
                self._worker = self._start_worker(resend=resend)
            except LinkError as error:
                self._problem = str(error)
                self._closing.wait(_RETRY_S)
            except Exception as error:
                # To try again would not help; told as the failure of whoever needs the link.
                self._failure = f"the link {self._query.link} cannot be used: {error}"
                return
            else:
                if self._resend != resend:
                    # Asked for in the moment in which the link was opened.
                    self.send_again()
                return

    def _start_worker(self, *, resend: bool) -> LinkSender | LinkReceiver:
        query, link = self._query, open_link(parse_link(self._query.link or ""))
        try:
            if query.role == "cloud":
                return LinkReceiver(link, query.log, durable=query.durable, founds=False).start()
            sender = LinkSender(link, query.log, query.site, resend=resend, founds=False)
            return sender.start()
        except BaseException:
            link.close()
            raise

    def _opened(self, deadline: float) -> LinkSender | LinkReceiver:
        while self._worker is None:
            if self._failure is not None:
                raise LinkError(self._failure)
            if time.monotonic() > deadline:
                raise LinkLate(f"no link {self._query.link}: {self._problem}")
            time.sleep(_LOOK_S)
        return self._worker


class SiteLinks:
    """All ends of links in one process, each for one link and one log."""

    def __init__(self) -> None:
        self._ends: dict[tuple[str, str | None, str], LinkEnd] = {}
        self._lock = threading.Lock()

    def connect(self, query: QuerySpec) -> None:
        """See to it that the link of this query is at work, if it has one.

        One that has ended by an error is begun anew, and everything is sent again.
        """
        if not query.ships:
            return
        with self._lock:
            end = self._ends.get(_key(query))
            if end is not None and end.error is None:
                return
            if end is not None:
                with suppress(Exception):
                    end.close()
            self._ends[_key(query)] = LinkEnd(query, resend=end is not None)

    def end_of(self, query: QuerySpec) -> LinkEnd:
        """The end of this query's link, which is begun if it is not there yet.

        Raises:
            InvalidInput: where the query has no link.
        """
        if not query.ships:
            raise InvalidInput([Defect(path="link", value=query.link, rule="a link that ships")])
        self.connect(query)
        with self._lock:
            return self._ends[_key(query)]

    def error_of(self, query: QuerySpec) -> str | None:
        """Why the link of this query cannot go on; nothing where it does, or there is none."""
        with self._lock:
            end = self._ends.get(_key(query))
        return None if end is None else end.error

    def gaps_of(self, query: QuerySpec) -> dict[str, str]:
        """What has been missing for long at this query's end of its link, by site."""
        with self._lock:
            end = self._ends.get(_key(query))
        return {} if end is None else end.gaps

    def close(self) -> None:
        """End all of them."""
        with self._lock:
            ends, self._ends = list(self._ends.values()), {}
        for end in ends:
            with suppress(Exception):
                end.close()


def _key(query: QuerySpec) -> tuple[str, str | None, str]:
    return query.role, query.link, str(query.log)
