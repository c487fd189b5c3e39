//go:build failpoints

package runner

import (
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// sqliteWrites is called before each write of SQLite: fails reports whether the write finds
// no room. SQLite makes system calls through a table in which a test may put its own
// function.
var sqliteWrites struct {
	once  sync.Once
	mu    sync.Mutex
	fails func() bool
}

// failSQLite makes SQLite call fails before each write, until the test ends.
func failSQLite(t *testing.T, fails func() bool) {
	t.Helper()
	set := func(f func() bool) {
		sqliteWrites.mu.Lock()
		defer sqliteWrites.mu.Unlock()
		sqliteWrites.fails = f
	}
	sqliteWrites.once.Do(func() { replaceWrites(t) })
	set(fails)
	t.Cleanup(func() { set(nil) })
}

func noRoom() bool {
	sqliteWrites.mu.Lock()
	f := sqliteWrites.fails
	sqliteWrites.mu.Unlock()
	return f != nil && f()
}

// The types of write and pwrite in SQLite's table.
type (
	writeCall  = func(*libc.TLS, int32, uintptr, uint64) int64
	pwriteCall = func(*libc.TLS, int32, uintptr, uint64, int64) int64
)

func replaceWrites(t *testing.T) {
	tls := libc.NewTLS()
	defer tls.Close()
	found := sqlite3.Xsqlite3_vfs_find(tls, 0)
	if found == 0 {
		t.Fatal("SQLite has no file system")
	}
	vfs := *(**sqlite3.Tsqlite3_vfs)(unsafe.Pointer(&found))
	get := goFunc[func(*libc.TLS, uintptr, uintptr) uintptr](vfs.FxGetSystemCall)
	set := goFunc[func(*libc.TLS, uintptr, uintptr, uintptr) int32](vfs.FxSetSystemCall)
	replace := func(name string, with func(was uintptr) uintptr) {
		c, err := libc.CString(name)
		if err != nil {
			t.Fatal(err)
		}
		if was := get(tls, found, c); was != 0 {
			if rc := set(tls, found, c, with(was)); rc != 0 {
				t.Fatalf("SQLite keeps its own %s: %d", name, rc)
			}
		}
	}
	replace("write", func(was uintptr) uintptr {
		write := goFunc[writeCall](was)
		return cFunc(func(tls *libc.TLS, fd int32, b uintptr, n uint64) int64 {
			if noRoom() {
				return full(tls)
			}
			return write(tls, fd, b, n)
		})
	})
	for _, name := range []string{"pwrite", "pwrite64"} {
		replace(name, func(was uintptr) uintptr {
			pwrite := goFunc[pwriteCall](was)
			return cFunc(func(tls *libc.TLS, fd int32, b uintptr, n uint64, at int64) int64 {
				if noRoom() {
					return full(tls)
				}
				return pwrite(tls, fd, b, n, at)
			})
		})
	}
}

// full returns the result of a system call that finds no room.
func full(tls *libc.TLS) int64 {
	where := libc.X__errno_location(tls)
	**(**int32)(unsafe.Pointer(&where)) = int32(syscall.ENOSPC)
	return -1
}

// goFunc converts a function of SQLite, which is translated from C, to a Go
// function.
func goFunc[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&struct{ uintptr }{p})) }

// kept keeps the functions alive that SQLite has pointers to.
var kept []any

// cFunc converts a Go function to a pointer that SQLite can call.
func cFunc(f any) uintptr {
	kept = append(kept, f)
	return (*(*[2]uintptr)(unsafe.Pointer(&f)))[1]
}
