package leave

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Names below a task's folder.
const (
	orderFile  = "order"
	taskFolder = "task"
	offerFile  = "offer"
	answerFile = "answer"
)

// offer is the offer of a program that supports this version of the protocol.
const offer = "carma-leave 1"

// maxLine is the number of bytes read of a file.
const maxLine = 512

// Folder is the folder of one attempt, on the machine. The folder above it must not be
// writable by the task's user.
type Folder string

// Make makes the folder for a task of a user. An existing folder is kept.
func (f Folder) Make(uid, gid int) error {
	inner := filepath.Join(string(f), taskFolder)
	if err := os.MkdirAll(string(f), 0o755); err != nil {
		return err
	}
	err := os.Mkdir(inner, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil && os.Getuid() == 0 {
		err = os.Lchown(inner, uid, gid)
	}
	return err
}

// Offered reports whether the task offers to vacate its GPUs.
func (f Folder) Offered() bool {
	line, err := f.read(taskFolder, offerFile)
	return err == nil && line == offer
}

// order is carma's order to a task: to vacate its GPUs, or to return.
type order struct {
	n     uint64 // 0 if none was written yet
	leave bool
}

func (o order) String() string {
	if o.leave {
		return fmt.Sprintf("leave %d", o.n)
	}
	return fmt.Sprintf("return %d", o.n)
}

// order returns the last order.
func (f Folder) order() (order, error) {
	line, err := f.read(orderFile)
	if errors.Is(err, fs.ErrNotExist) {
		return order{}, nil
	}
	if err != nil {
		return order{}, err
	}
	word, n, _, err := parse(line)
	if err != nil || word != "leave" && word != "return" {
		return order{}, fmt.Errorf("%s is no order of carma", filepath.Join(string(f), orderFile))
	}
	return order{n: n, leave: word == "leave"}, nil
}

// give writes the next order. An order that equals the last one is not written again, so
// that a program that is executing it is not asked twice.
func (f Folder) give(leave bool) (order, error) {
	last, err := f.order()
	if err != nil || last.n > 0 && last.leave == leave {
		return last, err
	}
	next := order{n: last.n + 1, leave: leave}
	path := filepath.Join(string(f), orderFile)
	if err := os.WriteFile(path+".new", []byte(next.String()+"\n"), 0o644); err != nil {
		return last, err
	}
	return next, os.Rename(path+".new", path)
}

// Words of an answer.
const (
	left   = "left"
	here   = "here"
	cannot = "cannot"
)

// answer returns the program's answer to an order; ok is false if there is none.
func (f Folder) answer(to order) (word, why string, ok bool) {
	line, err := f.read(taskFolder, answerFile)
	if err != nil {
		return "", "", false
	}
	word, n, why, err := parse(line)
	if err != nil || n != to.n || word != left && word != here && word != cannot {
		return "", "", false
	}
	return word, why, true
}

// Left reports whether the last order to the task was to leave, so it has left or is
// about to.
func (f Folder) Left() bool {
	o, err := f.order()
	return err == nil && o.n > 0 && o.leave
}

// isAway reports whether the program has left, and has not answered a later order.
func (f Folder) isAway(last order) bool {
	word, _, ok := f.answer(order{n: last.n - 1})
	return ok && word == left
}

// parse reads WORD NUMBER and the rest.
func parse(line string) (word string, n uint64, rest string, err error) {
	word, rest, _ = strings.Cut(line, " ")
	number, rest, _ := strings.Cut(rest, " ")
	n, err = strconv.ParseUint(number, 10, 64)
	return word, n, rest, err
}

// read returns the first line of a file of the folder. It follows no link and waits for
// no writer.
func (f Folder) read(names ...string) (string, error) {
	path := filepath.Join(append([]string{string(f)}, names...)...)
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", path)
	}
	text := make([]byte, maxLine)
	n, err := io.ReadFull(file, text)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	line, _, _ := strings.Cut(string(text[:n]), "\n")
	return strings.ToValidUTF8(strings.TrimSpace(line), "?"), nil
}
