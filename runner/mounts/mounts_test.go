package mounts

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// ann and bob are users of no passwd file.
var (
	ann = User{UID: 20001, GID: 20001}
	bob = User{UID: 20002, GID: 20002}
)

// world is a folder with the homes of two users.
//
//	home/ann  ann's, 0700: data/marker
//	home/bob  bob's, 0700: open/marker, which everybody could read if they got there
//	scratch   everybody's
//	outside   everybody may read: marker
func world(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can act for others")
	}
	w, err := os.MkdirTemp("/tmp", "carma-mounts")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(w) })
	make := func(dir string, mode os.FileMode, u User) {
		dir = filepath.Join(w, dir)
		for _, err := range []error{os.MkdirAll(dir, 0o755), os.Chmod(dir, mode), os.Chown(dir, u.UID, u.GID)} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	make("", 0o755, User{})
	make("home/ann", 0o700, ann)
	make("home/ann/data", 0o755, ann)
	make("home/bob", 0o700, bob)
	make("home/bob/open", 0o755, bob)
	make("scratch", 0o1777, User{})
	make("outside", 0o755, User{})
	for _, dir := range []string{"home/ann/data", "home/bob/open", "outside"} {
		if err := os.WriteFile(filepath.Join(w, dir, "marker"), []byte(dir), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func link(t *testing.T, to, at string) {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
}

// TestGate: the folders that each user may mount.
func TestGate(t *testing.T) {
	w := world(t)
	at := func(p string) string { return filepath.Join(w, p) }
	link(t, at("outside"), at("home/ann/out"))
	link(t, at("home/ann/data"), at("home/ann/in"))
	link(t, at("home/bob/open"), at("home/ann/bobs"))
	link(t, at("scratch"), at("fast"))
	link(t, "/", at("home/ann/all"))
	link(t, "data", at("home/ann/own"))
	if err := os.Mkdir(at("scratch/run"), 0o755); err != nil {
		t.Fatal(err)
	}
	who := ann
	who.Home = at("home/ann")
	tests := map[string]struct {
		allowed []string
		source  string
		want    string // its place, or "" if refused
	}{
		"its home":                      {[]string{"~"}, "home/ann", "home/ann"},
		"below its home":                {[]string{"~"}, "home/ann/data", "home/ann/data"},
		"a file":                        {[]string{"~"}, "home/ann/data/marker", "home/ann/data/marker"},
		"a link within":                 {[]string{"~"}, "home/ann/in", "home/ann/data"},
		"dots":                          {[]string{"~"}, "home/ann/data/../data/", "home/ann/data"},
		"a link out":                    {[]string{"~"}, "home/ann/out", ""},
		"dots out":                      {[]string{"~"}, "home/ann/../../outside", ""},
		"a name that begins alike":      {[]string{"/home/an"}, "home/ann", ""},
		"another's home":                {[]string{"~"}, "home/bob/open", ""},
		"allowed, not to be reached":    {[]string{at("home")}, "home/bob/open", ""},
		"by a link, not to be reached":  {[]string{at("home")}, "home/ann/bobs", ""},
		"allowed by a link":             {[]string{at("fast")}, "scratch/run", "scratch/run"},
		"by the same link":              {[]string{at("fast")}, "fast/run", "scratch/run"},
		"allowed below home":            {[]string{"~/own"}, "home/ann/data", "home/ann/data"},
		"allowed below home, a link up": {[]string{"~/all"}, "outside", ""},
		"no such":                       {[]string{"~"}, "home/ann/none", ""},
		"nothing allowed":               {nil, "home/ann", ""},
		"all allowed":                   {[]string{"/"}, "outside", "outside"},
	}
	for name, c := range tests {
		s, err := Gate{Allowed: c.allowed}.Open(who, at(c.source))
		switch {
		case err != nil && c.want != "":
			t.Errorf("%s: refused: %v", name, err)
		case err == nil && s.Path != at(c.want):
			t.Errorf("%s: opened %s", name, s.Path)
		}
		if err == nil {
			s.Close()
		}
	}
	if _, err := (Gate{Allowed: []string{"/"}}).Open(who, "/proc/self/root"); err == nil {
		t.Error("a link of /proc was followed")
	}
	rootless := who
	rootless.Home = "/"
	if _, err := (Gate{Allowed: []string{"~"}}).Open(rootless, at("outside")); err == nil {
		t.Error("whose home is / may mount everything")
	}
	var outside *OutsideError
	if _, err := (Gate{Allowed: []string{"~"}}).Open(who, at("outside")); !errors.As(err, &outside) || !strings.Contains(err.Error(), "below ~ (") {
		t.Errorf("the refusal: %v", err)
	}
	if os.Geteuid() != 0 { // the test's own thread is still root's
		t.Error("the rights of the process have changed")
	}
	if _, err := os.ReadDir(at("home/bob")); err != nil {
		t.Error(err)
	}
}

// TestGroups checks that the supplementary groups of a user give access.
func TestGroups(t *testing.T) {
	w := world(t)
	shared := filepath.Join(w, "shared")
	if err := errors.Join(os.Mkdir(shared, 0o750), os.Chown(shared, 0, 30000)); err != nil {
		t.Fatal(err)
	}
	g := Gate{Allowed: []string{w}}
	if _, err := g.Open(ann, shared); !errors.Is(err, unix.EACCES) {
		t.Errorf("without the group: %v", err)
	}
	member := ann
	member.Groups = []int{29999, 30000}
	s, err := g.Open(member, shared)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

// tries is the number of runs of the race: make test-security runs it 100,000 times.
var tries = flag.Int("tries", 5_000, "how often the race for a path is run")

// TestRace: while a path is opened, its owner swaps it, its target and its
// parents. The opened object is never outside the allowed folders.
func TestRace(t *testing.T) {
	w := world(t)
	n := *tries
	at := func(p string) string { return filepath.Join(w, "home/ann", p) }
	who := ann
	who.Home = filepath.Join(w, "home/ann")
	outside := map[uint64]bool{}
	for _, p := range []string{"/", w, filepath.Join(w, "outside"), filepath.Join(w, "home"), "/etc"} {
		var st unix.Stat_t
		if err := unix.Stat(p, &st); err != nil {
			t.Fatal(err)
		}
		outside[st.Ino<<8|st.Dev&0xff] = true
	}
	if err := errors.Join(os.MkdirAll(at("real/etc"), 0o755), os.MkdirAll(at("a/etc"), 0o755)); err != nil {
		t.Fatal(err)
	}
	link(t, "/", at("slash"))
	link(t, filepath.Join(w, "outside"), at("elsewhere"))
	link(t, at("real"), at("good"))

	var over atomic.Bool
	var flips atomic.Int64
	var all sync.WaitGroup
	flip := func(a, b string) {
		all.Go(func() {
			for !over.Load() {
				if err := unix.Renameat2(unix.AT_FDCWD, at(a), unix.AT_FDCWD, at(b), unix.RENAME_EXCHANGE); err != nil {
					t.Error(err)
					return
				}
				flips.Add(1)
			}
		})
	}
	flip("good", "slash")  // a link in the middle of the path, and at its end
	flip("a", "elsewhere") // a folder and a link out
	t.Cleanup(func() { over.Store(true); all.Wait() })

	sources := []string{at("good"), at("good/etc"), at("a"), at("a/etc"), at("a/../a/etc")}
	g := Gate{Allowed: []string{"~"}}
	opened, refused := 0, 0
	for i := range n {
		s, err := g.Open(who, sources[i%len(sources)])
		if err != nil {
			refused++
			continue
		}
		opened++
		var st unix.Stat_t
		if err := unix.Fstat(int(s.file.Fd()), &st); err != nil {
			t.Fatal(err)
		}
		if outside[st.Ino<<8|st.Dev&0xff] || !strings.HasPrefix(s.Path, who.Home+"/") {
			t.Fatalf("try %d: opened %s", i, s.Path)
		}
		s.Close()
	}
	over.Store(true)
	all.Wait()
	t.Logf("%d tries, %d opened, %d refused, %d flips", n, opened, refused, flips.Load())
	if opened == 0 || refused == 0 {
		t.Error("the race did not take place")
	}
}

// stage returns a stage below a folder of the test's own.
func stage(t *testing.T) *Stage {
	t.Helper()
	dir, err := os.MkdirTemp("/run", "carma-mounts-test")
	if err != nil {
		t.Skip(err)
	}
	s := &Stage{Dir: dir}
	t.Cleanup(func() {
		if err := s.Sweep(func(string) bool { return false }); err != nil {
			t.Error(err)
		}
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	return s
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestStage: a place shows the object that was opened, also if its path has
// become another object, and also if another daemon places it again. Clearing
// touches none of the user's files.
func TestStage(t *testing.T) {
	w := world(t)
	s := stage(t)
	who := ann
	who.Home = filepath.Join(w, "home/ann")
	data, file := filepath.Join(who.Home, "data"), filepath.Join(who.Home, "data/marker")
	if err := os.Mkdir(data+"/sub", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", data+"/sub", "tmpfs", 0, ""); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(data+"/sub", unix.MNT_DETACH) })
	if err := os.WriteFile(data+"/sub/deep", []byte("deep"), 0o644); err != nil {
		t.Fatal(err)
	}
	var sources []*Source
	for _, p := range []string{data, file} {
		source, err := Gate{Allowed: []string{"~"}}.Open(who, p)
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close()
		sources = append(sources, source)
	}
	if err := os.Rename(data, data+".old"); err != nil {
		t.Fatal(err)
	}
	link(t, "/", data)

	places, err := s.Place("carma-1", sources)
	if err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		for _, p := range []string{places[0] + "/marker", places[1]} {
			if text := read(t, p); text != "home/ann/data" {
				t.Errorf("%s has %q", p, text)
			}
		}
		if text := read(t, places[0]+"/sub/deep"); text != "deep" {
			t.Errorf("the sub-mount has %q", text)
		}
	}
	check()
	again, err := s.Place("carma-1", sources) // by the next daemon
	if err != nil || !slices.Equal(again, places) {
		t.Fatal(again, err)
	}
	check()
	if n := strings.Count(read(t, "/proc/self/mountinfo"), " "+places[0]+" "); n != 1 {
		t.Errorf("the place is mounted %d times", n)
	}
	swapped, err := s.Place("carma-1", []*Source{sources[1], sources[0]}) // the files have been swapped
	if err != nil || read(t, swapped[0]) != "home/ann/data" || read(t, swapped[1]+"/marker") != "home/ann/data" {
		t.Fatal(swapped, err)
	}

	if err := s.Sweep(func(name string) bool { return name == "carma-1" }); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(swapped[1] + "/marker"); err != nil {
		t.Errorf("a place that was to be kept: %v", err)
	}
	for range 2 { // a name without places is no error
		if err := s.Clear("carma-1"); err != nil {
			t.Fatal(err)
		}
	}
	if left, _ := os.ReadDir(s.Dir); len(left) > 0 || strings.Contains(read(t, "/proc/self/mountinfo"), s.Dir) {
		t.Errorf("left: %v", left)
	}
	if read(t, data+".old/marker") != "home/ann/data" || read(t, data+".old/sub/deep") != "deep" {
		t.Error("the user's files are not as they were")
	}
}

// TestSweepEmpty checks that only empty folders of other daemons are removed.
func TestSweepEmpty(t *testing.T) {
	all := t.TempDir()
	for _, dir := range []string{"own", "empty", "used/carma-1"} {
		if err := os.MkdirAll(filepath.Join(all, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	(&Stage{Dir: filepath.Join(all, "own")}).SweepEmpty()
	names, err := os.ReadDir(all)
	if err != nil || len(names) != 2 || names[0].Name() != "own" || names[1].Name() != "used" {
		t.Errorf("left are %v, %v", names, err)
	}
	if _, err := os.Stat(filepath.Join(all, "used/carma-1")); err != nil {
		t.Error(err)
	}
}
