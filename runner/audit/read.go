package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
)

// Read returns the newest records that fit, at most limit, in order of time. more is set
// if there are older ones that fit. damaged is the number of invalid lines.
func (l *Log) Read(limit int, fits func(*Record) bool) (list []Record, more bool, damaged int, err error) {
	contents, err := l.contents()
	if err != nil {
		return nil, false, 0, err
	}
	for _, b := range contents {
		for len(b) > 0 {
			var line []byte
			line, b = lastLine(b)
			var r Record
			switch {
			case json.Unmarshal(line, &r) != nil || r.Action == "":
				damaged++
			case !fits(&r):
			case len(list) == limit:
				slices.Reverse(list)
				return list, true, damaged, nil
			default:
				list = append(list, r)
			}
		}
	}
	slices.Reverse(list)
	return list, false, damaged, nil
}

// contents returns the content of the files, the newest first, between two records.
func (l *Log) contents() (all [][]byte, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := range files {
		b, err := os.ReadFile(l.path(n))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

// lastLine returns the last line of b without its end, and the bytes before it.
func lastLine(b []byte) (line, rest []byte) {
	b = bytes.TrimSuffix(b, []byte{'\n'})
	i := bytes.LastIndexByte(b, '\n') + 1
	return b[i:], b[:i]
}
