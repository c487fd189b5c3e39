package allocator

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestPoolIsASortedList: the pool of free blocks behaves like a list sorted by size, then by
// address.
func TestPoolIsASortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := New(Options{})
		var plain []int32
		order := func(i, j int32) int {
			x, y := &a.blocks[i], &a.blocks[j]
			return cmp.Or(cmp.Compare(x.size, y.size), cmp.Compare(x.addr, y.addr))
		}
		size := rapid.Int64Range(1, 20)
		next := int64(0)
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				for range rapid.IntRange(1, 100).Draw(t, "blocks") {
					next++
					i := a.take(block{size: size.Draw(t, "size"), addr: next * 7919 % 10007, free: true})
					a.insert(i)
					plain = append(plain, i)
				}
				slices.SortFunc(plain, order)
			},
			"find": func(t *rapid.T) {
				want := size.Draw(t, "size")
				got, ok := a.find(0, want)
				at := slices.IndexFunc(plain, func(i int32) bool { return a.blocks[i].size >= want })
				if ok != (at >= 0) || ok && got != plain[at] {
					t.Fatalf("of %d bytes: %d, %t; want the one at %d of %v", want, got, ok, at, plain)
				}
				if ok {
					plain = slices.Delete(plain, at, at+1)
				}
			},
			"remove": func(t *rapid.T) {
				if len(plain) == 0 {
					return
				}
				at := rapid.IntRange(0, len(plain)-1).Draw(t, "at")
				a.remove(plain[at])
				plain = slices.Delete(plain, at, at+1)
			},
			"reset": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "one in ten") == 0 {
					a.Reset(Options{})
					plain = plain[:0]
				}
			},
			"": func(t *rapid.T) {
				var all []int32
				for c := range a.pools[0].classes {
					class := a.pools[0].at(c)
					if len(class.free) == 0 {
						t.Fatalf("no block of %d bytes, and a class for them", a.pools[0].sizes[c])
					}
					for at, p := range class.free {
						if b := a.blocks[p.block]; b.size != a.pools[0].sizes[c] || b.addr != p.addr || b.place != int32(at) {
							t.Fatalf("%+v is at place %d of those of %d bytes", b, at, a.pools[0].sizes[c])
						}
						all = append(all, p.block)
					}
				}
				slices.SortFunc(all, order)
				if !slices.Equal(all, plain) {
					t.Fatalf("%v, want %v", all, plain)
				}
			},
		})
	})
}
