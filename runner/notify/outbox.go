package notify

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/moby/sys/atomicwriter"
)

// outbox is the file of the messages that are not delivered yet, and of the place in
// the journal up to which all messages are in it.
//
// It has one JSON object per line. A batch of messages ends with its place. Messages
// behind the last place are ignored, because they are made again. Deliveries are recorded
// without a sync, so after a crash of the machine a message may be sent twice, but is
// never lost.
type outbox struct {
	path  string
	f     *os.File
	size  int64
	done  int // number of lines about deliveries
	place place
}

// place is the position up to which the journal was read.
type place struct {
	Seq int64 `json:"seq"`
	// State is the state of the journal's reader.
	State json.RawMessage `json:"state,omitempty"`
}

// parcel is a message for some channels, not delivered yet.
type parcel struct {
	Message
	At time.Time `json:"put"` // by the wall clock
	To []key     `json:"to"`
}

// line is one line of the file; one of its fields is set.
type line struct {
	Parcel *parcel    `json:"m,omitempty"`
	Place  *place     `json:"at,omitempty"`
	Done   *delivered `json:"done,omitempty"`
}

type delivered struct {
	IDs []string `json:"ids"`
	To  key      `json:"to"`
}

// maxDone is the number of recorded deliveries at which the file is rewritten.
const maxDone = 2000

// openOutbox reads the file. known is false if there is no file, so that nothing was ever
// sent.
func openOutbox(path string) (b *outbox, waiting []parcel, known bool, err error) {
	b = &outbox{path: path}
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, false, err
	}
	var batch []parcel
	scan := bufio.NewScanner(bytes.NewReader(raw))
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var l line
		if json.Unmarshal(scan.Bytes(), &l) != nil {
			continue // torn by a crash
		}
		switch {
		case l.Parcel != nil:
			batch = append(batch, *l.Parcel)
		case l.Place != nil:
			waiting, batch = append(waiting, batch...), nil
			b.place, known = *l.Place, true
		case l.Done != nil:
			waiting = without(waiting, *l.Done)
		}
	}
	return b, waiting, known, b.rewrite(waiting)
}

// without returns the parcels without the delivered ones.
func without(list []parcel, d delivered) (rest []parcel) {
	is := map[string]bool{}
	for _, id := range d.IDs {
		is[id] = true
	}
	for _, p := range list {
		if is[p.ID] {
			var to []key
			for _, k := range p.To {
				if k != d.To {
					to = append(to, k)
				}
			}
			if p.To = to; len(to) == 0 {
				continue
			}
		}
		rest = append(rest, p)
	}
	return rest
}

// rewrite replaces the file by one with the waiting messages.
func (b *outbox) rewrite(waiting []parcel) error {
	var buf bytes.Buffer
	if err := encode(&buf, waiting, b.place); err != nil {
		return err
	}
	if err := writeFile(b.path, buf.Bytes()); err != nil {
		return err
	}
	f, err := os.OpenFile(b.path, os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if b.f != nil {
		b.f.Close()
	}
	b.f, b.size, b.done = f, int64(buf.Len()), 0
	return nil
}

func encode(buf *bytes.Buffer, list []parcel, at place) error {
	e := json.NewEncoder(buf)
	for i := range list {
		if err := e.Encode(line{Parcel: &list[i]}); err != nil {
			return err
		}
	}
	return e.Encode(line{Place: &at})
}

// put stores messages and the place behind them. Both are durable if it returns nil.
func (b *outbox) put(list []parcel, at place) error {
	var buf bytes.Buffer
	if err := encode(&buf, list, at); err != nil {
		return err
	}
	n, err := b.f.Write(buf.Bytes())
	if err == nil {
		err = b.f.Sync()
	}
	if err != nil { // a partial line would make the next one unreadable
		return errors.Join(err, b.f.Truncate(b.size))
	}
	b.size += int64(n)
	b.place = at
	return nil
}

// delivered marks messages as delivered.
func (b *outbox) delivered(d delivered) error {
	raw, err := json.Marshal(line{Done: &d})
	if err != nil {
		return err
	}
	n, err := b.f.Write(append(raw, '\n'))
	if err != nil {
		return errors.Join(err, b.f.Truncate(b.size))
	}
	b.size += int64(n)
	b.done++
	return nil
}

// writeFile atomically writes a file that only its owner can read.
func writeFile(path string, body []byte) error {
	if err := atomicwriter.WriteFile(path, body, 0o600); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return syncFolder(filepath.Dir(path))
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
