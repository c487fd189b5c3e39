package allocator

// expand lengthens the only segment of a pool. The segment's last block may be free.
func (a *Allocator) expand(p uint8, size int64) int32 {
	last := a.tail[p]
	if last != none && a.blocks[last].free {
		a.remove(last)
		more := roundUp(size-a.blocks[last].size, roundSegment)
		a.reserve(more)
		a.blocks[last].size += more
		return last
	}
	a.reserve(size)
	addr := int64(p) << 60
	if last != none {
		addr = a.blocks[last].addr + a.blocks[last].size
	}
	i := a.take(block{addr: addr, size: size, prev: last, next: none, pool: p})
	if last != none {
		a.blocks[last].next = i
	}
	a.tail[p] = i
	return i
}

// split cuts off the part of a block beyond size, if the pool splits such blocks.
func (a *Allocator) split(i int32, size int64) {
	b := a.blocks[i]
	rest := b.size - size
	switch {
	case a.opts.Async && rest > 0:
	case b.pool == 0 && rest >= granule:
	case b.pool == 1 && a.opts.Expandable && rest >= granule:
	case b.pool == 1 && rest > splitRest && (a.opts.MaxSplit == 0 || size < a.opts.MaxSplit):
	default:
		return
	}
	j := a.take(block{addr: b.addr + size, size: rest, prev: i, next: b.next, pool: b.pool, free: true})
	if b.next != none {
		a.blocks[b.next].prev = j
	} else if a.tail[b.pool] == i {
		a.tail[b.pool] = j
	}
	a.blocks[i].next, a.blocks[i].size = j, size
	a.insert(j)
}

// join merges the block right into its predecessor left.
func (a *Allocator) join(left, right int32) {
	r := a.blocks[right]
	a.blocks[left].size += r.size
	a.blocks[left].next = r.next
	if r.next != none {
		a.blocks[r.next].prev = left
	} else if a.tail[r.pool] == right {
		a.tail[r.pool] = left
	}
	a.spare = append(a.spare, right)
}

// flush returns all completely free segments to the driver.
func (a *Allocator) flush() {
	for p := range a.pools {
		var whole []int32
		for c := range a.pools[p].classes {
			for _, k := range a.pools[p].at(c).free {
				b := a.blocks[k.block]
				if b.next == none && (b.prev == none || a.opts.Expandable) {
					whole = append(whole, k.block)
				}
			}
		}
		for _, i := range whole {
			a.remove(i)
			a.drop(i)
		}
	}
}

func (a *Allocator) drop(i int32) {
	b := a.blocks[i]
	a.stats.Reserved -= b.size
	if b.prev != none {
		a.blocks[b.prev].next = none
	}
	if a.tail[b.pool] == i {
		a.tail[b.pool] = b.prev
	}
	a.spare = append(a.spare, i)
}

// take stores a block at an unused index.
func (a *Allocator) take(b block) int32 {
	if n := len(a.spare); n > 0 {
		i := a.spare[n-1]
		a.spare = a.spare[:n-1]
		a.blocks[i] = b
		return i
	}
	a.blocks = append(a.blocks, b)
	return int32(len(a.blocks) - 1)
}
