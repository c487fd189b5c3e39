package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Feature is something in the rows of a journal that is unknown to earlier programs. The
// journal records a feature in the transaction that first writes one of its items, and
// from then on a program without this feature refuses the journal.
type Feature struct {
	// Name is for people, and never changes.
	Name string
	// Items are written as in runner/verify/testdata/journal-items.txt: an event, a
	// decision or a key ("event cancel"), a field of a type ("model.Task.group"),
	// or a value ("model.Phase=held").
	Items []string
}

// features are the features of this program beyond schema 4. A row is never removed.
// TestJournalItems requires a new row for each new item in a journal.
var features = []Feature{}

// need is a feature that a journal has.
type need struct {
	Name string `json:"name"`
	// Since is the version of the program that first wrote the feature, or empty if
	// unknown.
	Since string `json:"since,omitempty"`
	// Event and Task, of the feature schema 4, are the last event and the highest
	// task that programs of earlier schemas have written.
	Event int64 `json:"event,omitempty"`
	Task  int64 `json:"task,omitempty"`
}

// schemaFeature returns the name of the feature for a schema.
func schemaFeature(version int) string { return fmt.Sprintf("schema %d", version) }

// known reports whether this program has a feature.
func known(name string) bool {
	for v := featureSchema; v <= schemaVersion; v++ {
		if name == schemaFeature(v) {
			return true
		}
	}
	return slices.ContainsFunc(features, func(f Feature) bool { return f.Name == name })
}

// needs returns the features that the journal has, in the order in which they
// were first written.
func (h head) needs() (all []need, err error) {
	if err := json.Unmarshal([]byte(h.features), &all); err != nil {
		return nil, fmt.Errorf("%w: its list of features cannot be read: %w", ErrDamaged, err)
	}
	return all, nil
}

// add adds a feature that is not in the list yet.
func (h *head) add(n need) error {
	all, err := h.needs()
	if err != nil || slices.ContainsFunc(all, func(o need) bool { return o.Name == n.Name }) {
		return err
	}
	b, err := json.Marshal(append(all, n))
	h.features = string(b)
	return err
}

// understood returns an error that wraps [ErrNewer] if the journal has features
// that this program does not have.
func (h head) understood() error {
	all, err := h.needs()
	if err != nil {
		return err
	}
	var lacking []string
	for _, n := range all {
		if !known(n.Name) {
			lacking = append(lacking, fmt.Sprintf("%q", n.Name))
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	return &Newer{What: "this carma does not know " + strings.Join(lacking, ", "), Version: all[len(all)-1].Since}
}

// checkFeatures refuses a journal with features that this program does not have.
func checkFeatures(q querier) error {
	h, err := readHead(q)
	if err != nil {
		return err
	}
	return h.understood()
}

// writes reports whether a row has an item of the feature. A key or a value of the same
// spelling elsewhere in the row counts as well, so a feature may be recorded earlier than
// necessary.
func (f Feature) writes(form string, body []byte) bool {
	return slices.ContainsFunc(f.Items, func(item string) bool {
		if kind, _, _ := strings.Cut(item, " "); kind == "event" || kind == "decision" || kind == "key" {
			return item == form
		}
		if _, value, ok := strings.Cut(item, "="); ok {
			return bytes.Contains(body, []byte(`"`+value+`"`))
		}
		return bytes.Contains(body, []byte(`"`+item[strings.LastIndexByte(item, '.')+1:]+`":`))
	})
}

// note adds to h the features that a row has and h does not name yet.
func (h *head) note(version, form string, body []byte) error {
	for _, f := range features {
		if !f.writes(form, body) {
			continue
		}
		if err := h.add(need{Name: f.Name, Since: version}); err != nil {
			return err
		}
	}
	return nil
}

// Newer is the error that a newer carma has written something that is unknown to this
// program. It wraps [ErrNewer].
type Newer struct {
	What string // the unknown feature
	// Version is a version that can continue, or empty if unknown.
	Version string
}

func (n *Newer) Error() string {
	use := "a newer carma"
	if n.Version != "" {
		use = "carma " + n.Version + " or newer"
	}
	return fmt.Sprintf("%v: %s; use %s, or restore a backup from before it (docs/install.md, Back to an older version); nothing was changed", ErrNewer, n.What, use)
}

func (n *Newer) Unwrap() error { return ErrNewer }

// Usage returns true, as for a [Refusal].
func (n *Newer) Usage() bool { return true }

// Writer returns the version of the program that wrote to the journal last, or
// "" if it is not known.
func (r *Reader) Writer() (version string, err error) {
	h, err := r.head()
	return h.writer, err
}

// Legacy returns the last event and the highest task that programs of schema 3 or earlier
// may have written. Their rows may have fields that no longer exist.
func (r *Reader) Legacy() (event, task int64, err error) {
	h, err := r.head()
	if err != nil {
		return 0, 0, err
	}
	all, err := h.needs()
	for _, n := range all {
		if n.Name == schemaFeature(featureSchema) {
			event, task = n.Event, n.Task
		}
	}
	return event, task, err
}

// Features returns the features of this program beyond schema 4.
func Features() []Feature { return slices.Clone(features) }
