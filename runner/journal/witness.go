package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// A witness is a file of two slots, written in turn, so that one slot remains if a write
// of the other is interrupted. A slot has the journal's head and the inode of the
// database file, with a checksum.
const (
	witnessFile = "witness"
	slotSize    = 512
	slotMagic   = "carma witness 1\n"
)

// witness is an open witness.
type witness struct {
	f *os.File
	// synced makes a write return only when it has reached the disk.
	synced bool
	turn   int64
}

// witnesses contains the witnesses of a journal, the one in its folder and, if
// configured, one outside. file is the inode of the database file.
type witnesses struct {
	inside, outside *witness
	file            uint64
}

// write writes to all witnesses. It returns only an error of the one inside.
func (w witnesses) write(h head) error {
	if w.outside != nil {
		_ = w.outside.write(h, w.file)
	}
	if w.inside == nil {
		return nil // the journal is being opened
	}
	return w.inside.write(h, w.file)
}

func (w witnesses) close() error {
	var errs []error
	for _, one := range []*witness{w.inside, w.outside} {
		if one != nil {
			errs = append(errs, one.f.Close())
		}
	}
	return errors.Join(errs...)
}

func (w *witness) write(h head, file uint64) error {
	w.turn++
	if _, err := w.f.WriteAt(slot(h, file), w.turn%2*slotSize); err != nil {
		return err
	}
	if !w.synced {
		return nil
	}
	return syscall.Fdatasync(int(w.f.Fd()))
}

func slot(h head, file uint64) []byte {
	b := append(make([]byte, 0, slotSize), slotMagic...)
	b = append(b, h.id[:]...)
	for _, n := range []int64{h.commits, h.event, h.chain, h.base, h.link, h.decided, h.task, h.at, int64(file)} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	b = append(b, h.instance...)
	b = append(b, make([]byte, maxInstance-len(h.instance))...)
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	return b[:slotSize]
}

func readSlot(b []byte) (h head, file uint64, ok bool) {
	const size = len(slotMagic) + len(h.id) + 9*8 + maxInstance
	if len(b) < size+4 || !bytes.HasPrefix(b, []byte(slotMagic)) ||
		binary.BigEndian.Uint32(b[size:]) != crc32.Checksum(b[:size], castagnoli) {
		return head{}, 0, false
	}
	copy(h.id[:], b[len(slotMagic):])
	b = b[len(slotMagic)+len(h.id):]
	var n int64
	for i, to := range []*int64{&h.commits, &h.event, &h.chain, &h.base, &h.link, &h.decided, &h.task, &h.at, &n} {
		*to = int64(binary.BigEndian.Uint64(b[8*i:]))
	}
	h.instance = string(bytes.TrimRight(b[9*8:9*8+maxInstance], "\x00"))
	return h, uint64(n), true
}

// errNoSlot means that there is a witness, but none of its slots can be read.
var errNoSlot = errors.New("no slot of it can be read")

// readWitness returns the newer of the two slots. An error wraps
// [fs.ErrNotExist] if there is no witness.
func readWitness(path string) (h head, file uint64, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return head{}, 0, err
	}
	found := false
	for at := 0; at+slotSize <= len(b) && at < 2*slotSize; at += slotSize {
		if s, f, ok := readSlot(b[at : at+slotSize]); ok && (!found || s.commits > h.commits) {
			h, file, found = s, f, true
		}
	}
	if !found {
		return head{}, 0, fmt.Errorf("%s: %w", path, errNoSlot)
	}
	return h, file, nil
}

// openWitness opens the witness at path, or makes one. A new witness is written whole, so
// that no later write needs room on the disk.
func openWitness(path string, synced bool, h head, file uint64) (*witness, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	w := &witness{f: f, synced: synced}
	info, err := f.Stat()
	if err == nil && info.Size() != 2*slotSize {
		b := slot(h, file)
		_, err = f.WriteAt(append(b, b...), 0)
		if err == nil {
			err = f.Truncate(2 * slotSize)
		}
		if err == nil && synced {
			err = errors.Join(f.Sync(), syncDir(filepath.Dir(path)))
		}
	}
	if err == nil && info.Size() == 2*slotSize {
		// The older slot is written first, so that one readable slot always
		// stays.
		b := make([]byte, 2*slotSize)
		if _, err = f.ReadAt(b, 0); err == nil {
			zero, _, ok0 := readSlot(b[:slotSize])
			one, _, ok1 := readSlot(b[slotSize:])
			if ok0 && (!ok1 || zero.commits >= one.commits) {
				w.turn = 0 // the next write goes to slot 1
			} else {
				w.turn = 1
			}
			err = w.write(h, file)
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("witness %s: %w", path, err)
	}
	return w, nil
}

// confront compares the journal with its witnesses, and makes missing ones. A witness may
// be older if the daemon or the machine died between the commit and the write of the
// witness.
func (j *Journal) confront(o Options) error {
	file, err := inode(filepath.Join(j.dir, dataFile))
	if err != nil {
		return err
	}
	j.witnesses.file = file
	path := filepath.Join(j.dir, witnessFile)
	switch h, was, err := readWitness(path); {
	case err == nil:
		if err := j.compare(h, was, file); err != nil {
			return err
		}
	case errors.Is(err, fs.ErrNotExist) && j.at.commits == 0: // a new journal, or one of an older carma
	case errors.Is(err, fs.ErrNotExist):
		return j.lost("the journal's witness is missing", "so it is not known whether this is all that was written", j.at)
	case errors.Is(err, errNoSlot):
		return j.lost("the journal's witness is damaged", "so it is not known whether this is all that was written", j.at)
	default:
		return err
	}
	if o.Outside != "" {
		if h, _, err := readWitness(o.Outside); err == nil && h.id == j.at.id && h.commits > j.at.commits {
			return j.lost("the folder of the journal was set back", "", h)
		}
		j.witnesses.outside, _ = openOutside(o.Outside, j.at, file)
	}
	j.witnesses.inside, err = openWitness(path, true, j.at, file)
	return err
}

// replaceWitness replaces the witness in dir, whatever it has recorded.
func replaceWitness(dir string, h head) error {
	file, err := inode(filepath.Join(dir, dataFile))
	if err != nil {
		return err
	}
	path := filepath.Join(dir, witnessFile)
	if err := os.Remove(path + ".new"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	w, err := openWitness(path+".new", true, h, file)
	if err != nil {
		return err
	}
	if err := errors.Join(w.f.Close(), os.Rename(path+".new", path)); err != nil {
		return err
	}
	return syncDir(dir)
}

func openOutside(path string, h head, file uint64) (*witness, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return openWitness(path, false, h, file)
}

// compare refuses the journal if its witness has recorded another one. h is the head in
// the witness, was the inode in the witness, file the present inode.
func (j *Journal) compare(h head, was, file uint64) error {
	switch {
	case h.id != j.at.id:
		return j.lost("the database is of another journal than its witness", "a copy of another one was put in its place", h)
	case h.commits > j.at.commits && was != file:
		return j.lost("the journal was replaced by an older copy", "", h)
	case h.commits > j.at.commits:
		return j.lost("the journal has lost its end", "", h)
	case was != file:
		return j.lost("the journal is a copy", "its folder was moved, or a backup of the whole folder put in its place: nothing shows whether it is the newest", h)
	case h.event < j.at.base:
		return nil // the last event that the witness recorded has been pruned since
	}
	chain, err := j.before(h.event)
	if err != nil {
		return err
	}
	if chain != h.chain {
		return j.lost("the journal has another history than its witness", fmt.Sprintf("event %d is not the one that was written", h.event), h)
	}
	return nil
}

func inode(path string) (uint64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Sys().(*syscall.Stat_t).Ino, nil
}
