package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Refusal is the error of a journal that is not opened, because it is not, or may not be,
// the last one written there. Nothing has been changed.
type Refusal struct {
	Err   error    // wrapped: ErrDamaged, or another cause
	What  string   // the problem in one line
	Facts []string // known facts, a line each
	Fix   string   // the command after which the next start works
}

func (r *Refusal) Error() string {
	var b strings.Builder
	b.WriteString(r.What)
	for _, f := range r.Facts {
		b.WriteString("\n  " + f)
	}
	if r.Fix != "" {
		b.WriteString("\n  to go on: " + r.Fix)
	}
	return b.String()
}

func (r *Refusal) Unwrap() error { return r.Err }

// Usage returns true, because nothing has happened, and repeating the call will not help.
func (r *Refusal) Usage() bool { return true }

// Whole returns the error in several lines, with the facts and the command for the
// repair.
func (r *Refusal) Whole() string { return r.Error() }

// unchanged is an error that occurs before anything is changed. Repeating the call will
// not help.
type unchanged string

func (u unchanged) Error() string { return string(u) }

// Usage returns true, as for a [Refusal].
func (u unchanged) Usage() bool { return true }

// FixCommand returns the command after which the next start works.
func FixCommand(dir string) string {
	return "carma journal repair --accept-loss --data-dir " + quoted(dir)
}

// quoted returns a path quoted for a shell.
func quoted(path string) string {
	if strings.ContainsFunc(path, func(c rune) bool {
		return !strings.ContainsRune("/._-+:@%,=", c) && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	}) {
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}

// refusal converts an error that wraps ErrDamaged to a [Refusal], and returns other
// errors unchanged.
func refusal(dir string, err error) error {
	var r *Refusal
	if errors.As(err, &r) {
		return r
	}
	if !errors.Is(err, ErrDamaged) {
		return err
	}
	r = &Refusal{Err: err, What: err.Error(), Fix: FixCommand(dir)}
	if h, _, err := readWitness(filepath.Join(dir, witnessFile)); err == nil {
		r.Facts = append(r.Facts, "last written: "+h.stand())
	}
	r.Facts = append(r.Facts, "what is sound, and what is not: carma journal check --data-dir "+quoted(dir))
	return r
}

// lost returns the refusal of a journal that differs from the one that its witness
// recorded.
func (j *Journal) lost(what, detail string, seen head) error {
	r := &Refusal{Err: ErrDamaged, What: fmt.Sprintf("%s (%s)", what, j.dir), Fix: FixCommand(j.dir)}
	if detail != "" {
		r.Facts = append(r.Facts, detail)
	}
	r.Facts = append(r.Facts, "here: "+j.at.stand())
	if seen.features, seen.writer = j.at.features, j.at.writer; seen != j.at {
		r.Facts = append(r.Facts, "last written: "+seen.stand())
	}
	if missing := seen.event - j.at.event; missing > 0 {
		r.Facts = append(r.Facts, fmt.Sprintf("missing: events %d to %d, all since %s", j.at.event+1, seen.event, clock(j.at.at)))
	} else if seen.commits > j.at.commits {
		r.Facts = append(r.Facts, fmt.Sprintf("missing: %d changes to decisions and task records", seen.commits-j.at.commits))
	}
	r.Facts = append(r.Facts,
		"containers are left alone, and go on; if you have a newer copy of the folder, put it back with: carma journal restore")
	return r
}

// private refuses a folder that other users can change, because the daemon would trust
// their files.
func private(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	uid, me := int(info.Sys().(*syscall.Stat_t).Uid), os.Geteuid()
	if uid != me {
		mend := "chown " + strconv.Itoa(me) + " " + quoted(dir)
		if me != 0 { // only root can take a folder of another user
			mend = "choose a folder of your own with --data-dir"
		}
		return &Refusal{
			Err: os.ErrPermission, What: "the data folder " + dir + " belongs to somebody else",
			Facts: []string{fmt.Sprintf("its owner has uid %d, the daemon runs with %d: what is in it could be changed behind the daemon's back", uid, me)},
			Fix:   mend,
		}
	}
	if info.Mode().Perm()&0o022 != 0 {
		return &Refusal{
			Err: os.ErrPermission, What: "others can write to the data folder " + dir,
			Facts: []string{fmt.Sprintf("its mode is %#o: what is in it could be changed behind the daemon's back", info.Mode().Perm())},
			Fix:   "chmod go-w " + quoted(dir),
		}
	}
	return nil
}

// checkEnd checks the parts that a start depends on, in a journal that is too large to be
// checked whole. The last event must be the one that the head names.
func (j *Journal) checkEnd() error {
	if j.at.event == 0 {
		return nil
	}
	switch last, err := j.before(j.at.event); {
	case err != nil:
		return fmt.Errorf("event %d: %w", j.at.event, err)
	case last != j.at.chain:
		return fmt.Errorf("%w: event %d is not the one that was last", ErrDamaged, j.at.event)
	}
	return nil
}
