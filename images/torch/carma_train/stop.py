"""The checkpoint signal: SIGTERM, which carma and docker stop send, or SIGUSR1."""

import signal

EXIT_SAVED = 75  # stopped and saved: run again to go on
SIGNALS = (signal.SIGTERM, signal.SIGUSR1)


class Flag:
    """Whether it is time to save and stop. A signal raises it; so does the first process, in the integer shared."""

    def __init__(self):
        self.own, self.shared = False, None

    def listen(self):
        for s in SIGNALS:
            signal.signal(s, self._raise)

    @property
    def up(self):
        return self.own or bool(self.shared and self.shared.value)

    def _raise(self, *_):
        self.own = True


flag = Flag()
