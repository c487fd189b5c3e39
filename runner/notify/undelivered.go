package notify

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// lostKept is the number of given-up messages that each channel stores.
const lostKept = 200

// lost is a message that was given up.
type lost struct {
	task  int64
	event string
	why   string
	at    time.Time
}

// remember stores messages that are given up, with the error.
func (q *queue) remember(list []item, why string) {
	for _, x := range list {
		if x.m.Task != 0 {
			q.lost = append(q.lost, lost{x.m.Task, x.m.Event, why, time.Now()})
		}
	}
	q.lost = slices.Delete(q.lost, 0, max(0, len(q.lost)-lostKept))
}

// Undelivered returns a line for each message about a task that its owner has not
// received, with the reason. These are messages that wait after a failure, and messages
// given up since the daemon's start. The lines contain no addresses and no text of the
// receivers. It is empty if no message is known to be missing.
func (p *Post) Undelivered(uid int, task int64) (lines []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, q := range p.queues {
		if k.UID != uid {
			continue
		}
		for _, l := range q.lost {
			if l.task == task {
				lines = append(lines, fmt.Sprintf("%s: its message %q was given up at %s: %s", k.Name, l.event, l.at.Local().Format("15:04"), l.why))
			}
		}
		if q.failed.IsZero() {
			continue
		}
		for _, x := range q.waiting {
			if x.m.Task == task {
				lines = append(lines, fmt.Sprintf("%s: its message %q waits, tried again at %s: %s", k.Name, x.m.Event, q.next.Local().Format("15:04"), cmp.Or(q.err, "it failed")))
			}
		}
	}
	slices.Sort(lines)
	return lines
}
