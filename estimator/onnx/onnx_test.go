package onnx

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// model is y = x + 1 for [n, 2].
func model(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/add.onnx")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// needLibrary skips a test if there is no library. In CI there must be one.
func needLibrary(t *testing.T) {
	t.Helper()
	if s := Status(); !s.On {
		if os.Getenv("CI") == "true" && possible() == nil {
			t.Fatal(s.Why)
		}
		t.Skip(s.Why)
	}
}

func TestRun(t *testing.T) {
	needLibrary(t)
	s := New("add", model(t), []string{"x"}, []string{"y"})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 20 {
				x := float32(i*100 + n)
				out, err := s.Run(Rows(2, []float32{x, 1, 2, 3}))
				if err != nil || len(out) != 1 || out[0].Data[0] != x+1 || out[0].Data[3] != 4 || out[0].Shape[0] != 2 {
					t.Errorf("%v, %v", out, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if s := Status(); !s.On || !s.Loaded || s.Version == "" || s.Path == "" || s.Why != "" {
		t.Errorf("%+v", s)
	}
}

func TestBadModel(t *testing.T) {
	needLibrary(t)
	good := model(t)
	tests := map[string][]byte{"empty": nil, "garbage": []byte("this is no model"), "zeros": make([]byte, 4096)}
	for _, cut := range []int{1, len(good) / 4, len(good) / 2, len(good) - 1} {
		tests["cut to "+string(rune('0'+cut%10))] = good[:cut]
	}
	for name, b := range tests {
		s := New(name, b, []string{"x"}, []string{"y"})
		for range 2 {
			if _, err := s.Run(Rows(1, []float32{1, 2})); err == nil || !strings.Contains(err.Error(), "model "+name+": it ") || errors.Is(err, ErrUnavailable) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestBadInput(t *testing.T) {
	needLibrary(t)
	s := New("add", model(t), []string{"x"}, []string{"y"})
	for name, in := range map[string][]Tensor{
		"none": {}, "no shape": {{}}, "negative": {{Shape: []int64{-1}, Data: []float32{1}}},
		"short": {{Shape: []int64{2, 2}, Data: []float32{1}}}, "columns": {Rows(1, []float32{1, 2, 3})},
	} {
		if out, err := s.Run(in...); err == nil {
			t.Errorf("%s: %v", name, out)
		}
	}
}

// A chosen file that is no usable library is an error, never a crash. No other
// library is tried.
func TestBrokenLibrary(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, b, 0o644); err != nil {
			t.Fatal(err)
		}
		return p
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ path, want string }{
		{filepath.Join(dir, "none.so"), "no such file"},
		{dir, "not a file"},
		{write("text.so", []byte("hello")), "not a library"},
		{write("empty.so", nil), "not a library"},
		{self, "not"},
	}
	if found, _ := find(); len(found) > 0 {
		b, err := os.ReadFile(found[0].path)
		if err != nil {
			t.Fatal(err)
		}
		tests = append(tests, struct{ path, want string }{write("cut.so", b[:len(b)/2]), "not a library"})
		tests = append(tests, struct{ path, want string }{write("end.so", append(b[:len(b)/2:len(b)/2], make([]byte, len(b)/2)...)), "not a library"})
	}
	for _, tt := range tests {
		t.Setenv(Variable, tt.path)
		var l library
		if s := l.status(); s.On || !strings.Contains(s.Why, tt.want) && possible() == nil || s.Why == "" {
			t.Errorf("%s: %+v", tt.path, s)
		}
		if err := l.load(); !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v", tt.path, err)
		}
	}
}

func TestOld(t *testing.T) {
	for v, want := range map[string]bool{"1.23.2": true, "1.24.0": false, "1.30": false, "2.0": false, "0.9": true, "": false, "x": false} {
		if old(v) != want {
			t.Errorf("%s: %v", v, !want)
		}
	}
}

// The places of npm and PyPI are searched, places from the environment first. A library
// that everybody can write to is refused.
func TestPlaces(t *testing.T) {
	dir := t.TempDir()
	venv := filepath.Join(dir, "lib/python3.11/site-packages/onnxruntime/capi/libonnxruntime.so.1.24.0")
	if err := os.MkdirAll(filepath.Dir(venv), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(venv, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(venv, 0o666); err != nil {
		t.Fatal(err)
	}
	got := places(func(k string) string { return map[string]string{"VIRTUAL_ENV": dir}[k] })
	if len(got) == 0 || got[len(got)-1] != venv && !strings.Contains(strings.Join(got, " "), venv) {
		t.Errorf("%v", got)
	}
	if err := trusted(venv); err == nil {
		t.Error("trusted")
	}
}
