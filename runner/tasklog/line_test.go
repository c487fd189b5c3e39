package tasklog

import (
	"bytes"
	"reflect"
	"testing"
	"time"
)

func TestParseLine(t *testing.T) {
	at := time.Date(2026, 11, 21, 3, 4, 5, 123456789, time.UTC)
	for _, tt := range []struct {
		in   string
		want Line
		ok   bool
	}{
		{"2026-11-21T03:04:05.123456789Z stdout F a line", Line{at, Stdout, []byte("a line"), false}, true},
		{"2026-11-21T03:04:05.123456789Z stderr P  x ", Line{at, Stderr, []byte(" x "), true}, true},
		{"2026-11-21T03:04:05.123456789Z carma F ", Line{at, Note, []byte{}, false}, true},
		{"2026-11-21T04:04:05.123456789+01:00 stdout F x", Line{at, Stdout, []byte("x"), false}, true},
		{"2026-11-21T03:04:05Z stdout F:tag x", Line{at.Truncate(time.Second), Stdout, []byte("x"), false}, true},
		{in: "2026-11-21T03:04:05.123456789Z stdout F"},
		{in: "2026-11-21T03:04:05.123456789Z stdin F x"},
		{in: "2026-11-21T03:04:05.123456789Z unknown F x"},
		{in: "2026-11-21T03:04:05.123456789Z  F x"},
		{in: "2026-11-21T03:04:05.123456789Z stdout Q x"},
		{in: "2026-11-21 03:04:05 stdout F x"},
		{in: "\x00\x00\x00"},
		{in: ""},
	} {
		got, ok := parseLine([]byte(tt.in))
		if ok != tt.ok || ok && !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%q: %+v %v, want %+v %v", tt.in, got, ok, tt.want, tt.ok)
		}
	}
}

// A line that can be parsed can be written, and parses to the same again.
func FuzzParseLine(f *testing.F) {
	f.Add([]byte("2026-11-21T03:04:05.123456789Z stdout F a line"))
	f.Add([]byte("2026-11-21T03:04:05+01:00 stderr P:x "))
	f.Add([]byte("0000-01-01T00:00:00-23:59 stderr P "))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, ok := parseLine(b)
		if !ok || bytes.IndexByte(b, '\n') >= 0 || l.At.Year() < 0 || l.At.Year() > 9999 {
			return
		}
		again, ok := parseLine(bytes.TrimSuffix(appendLine(nil, l), []byte("\n")))
		if !ok || !reflect.DeepEqual(again, l) {
			t.Errorf("%q: %+v, written and read %+v", b, l, again)
		}
	})
}
