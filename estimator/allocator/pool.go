package allocator

import "slices"

// pageSize is the most free blocks of a page. A block that comes or goes moves at most
// so many others. One list of all took most of the time of a large network's
// simulation, whose pools have thousands of free blocks.
const pageSize = 64

// pool has the free blocks sorted by size, then by address, in pages that are never
// empty.
type pool struct {
	pages [][]key
	spare [][]key // empty, to be used again
}

type key struct {
	size, addr int64
	block      int32
}

func (k key) less(than key) bool {
	return k.size < than.size || k.size == than.size && k.addr < than.addr
}

// seek returns the page and the place of the first block that is not less than k. If
// there is none, page is their number.
func (p *pool) seek(k key) (page, at int) {
	low, high := 0, len(p.pages)
	for low < high {
		middle := (low + high) / 2
		if keys := p.pages[middle]; keys[len(keys)-1].less(k) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low == len(p.pages) {
		return low, 0
	}
	return low, within(p.pages[low], k)
}

// within is the place of the first key that is not less than k.
func within(keys []key, k key) int {
	low, high := 0, len(keys)
	for low < high {
		middle := (low + high) / 2
		if keys[middle].less(k) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

func (p *pool) reset() {
	for _, keys := range p.pages {
		p.spare = append(p.spare, keys[:0])
	}
	p.pages = p.pages[:0]
}

func (p *pool) insert(k key) {
	page, at := p.seek(k)
	if page == len(p.pages) {
		if page == 0 {
			p.pages = append(p.pages, append(p.empty(), k))
			return
		}
		page--
		at = len(p.pages[page])
	}
	if len(p.pages[page]) == pageSize {
		upper := append(p.empty(), p.pages[page][pageSize/2:]...)
		p.pages[page] = p.pages[page][:pageSize/2]
		p.pages = slices.Insert(p.pages, page+1, upper)
		if at > pageSize/2 {
			page, at = page+1, at-pageSize/2
		}
	}
	p.pages[page] = slices.Insert(p.pages[page], at, k)
}

func (p *pool) delete(page, at int) {
	keys := slices.Delete(p.pages[page], at, at+1)
	p.pages[page] = keys
	if len(keys) == 0 {
		p.spare = append(p.spare, keys)
		p.pages = slices.Delete(p.pages, page, page+1)
	}
}

// empty is a page without blocks.
func (p *pool) empty() []key {
	if n := len(p.spare); n > 0 {
		keys := p.spare[n-1]
		p.spare = p.spare[:n-1]
		return keys
	}
	return make([]key, 0, pageSize)
}

// find takes the smallest free block of a pool that has at least size bytes.
func (a *Allocator) find(p uint8, size int64) (int32, bool) {
	pool := &a.pools[p]
	page, at := pool.seek(key{size: size, addr: -1})
	if page == len(pool.pages) {
		return none, false
	}
	best := pool.pages[page][at]
	if limit := a.opts.MaxSplit; limit > 0 && p == 1 {
		// A block that is too large to be split serves no small request. It
		// serves a large request only if less than a segment would stay unused.
		if size < limit && best.size >= limit || size >= limit && best.size >= size+largeSegment {
			return none, false
		}
	}
	pool.delete(page, at)
	return best.block, true
}

func (a *Allocator) insert(i int32) {
	b := &a.blocks[i]
	a.pools[b.pool].insert(key{b.size, b.addr, i})
}

func (a *Allocator) remove(i int32) {
	b := &a.blocks[i]
	pool := &a.pools[b.pool]
	pool.delete(pool.seek(key{b.size, b.addr, i}))
}
