package allocator

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestPoolIsASortedList: pages of blocks behave like one sorted list of them.
func TestPoolIsASortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p pool
		var plain []key
		order := func(a, b key) int {
			if a.less(b) {
				return -1
			}
			return 1
		}
		size := rapid.Int64Range(1, 20)
		next := int64(0)
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				for range rapid.IntRange(1, 2*pageSize).Draw(t, "blocks") {
					next++
					k := key{size: size.Draw(t, "size"), addr: next * 7919 % 10007, block: int32(next)}
					p.insert(k)
					plain = append(plain, k)
				}
				slices.SortFunc(plain, order)
			},
			"take": func(t *rapid.T) {
				want := key{size: size.Draw(t, "size"), addr: -1}
				page, at := p.seek(want)
				i := slices.IndexFunc(plain, func(k key) bool { return !k.less(want) })
				if i < 0 {
					if page != len(p.pages) {
						t.Fatalf("found a block of %d", want.size)
					}
					return
				}
				if got := p.pages[page][at]; got != plain[i] {
					t.Fatalf("found %v, want %v", got, plain[i])
				}
				p.delete(page, at)
				plain = slices.Delete(plain, i, i+1)
			},
			"reset": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "one in ten") == 0 {
					p.reset()
					plain = plain[:0]
				}
			},
			"": func(t *rapid.T) {
				if all := slices.Concat(p.pages...); !slices.Equal(all, plain) {
					t.Fatalf("%v, want %v", all, plain)
				}
			},
		})
	})
}
