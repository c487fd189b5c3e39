package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// columns contains the concatenated columns of a row for its checksum. They include the
// key, so that a row in the wrong place is detected.
type columns []byte

func row(size int, numbers ...int64) columns {
	return make(columns, 0, size+8*len(numbers)+16).numbers(numbers...)
}

func (c columns) numbers(ns ...int64) columns {
	for _, n := range ns {
		c = binary.BigEndian.AppendUint64(c, uint64(n))
	}
	return c
}

// text adds texts, each with a zero at its end, so that no letter can move to the next
// column.
func (c columns) text(s ...string) columns {
	for _, s := range s {
		c = append(append(c, s...), 0)
	}
	return c
}

// sum adds the body, which may be large and is not copied, and returns the
// checksum.
func (c columns) sum(body []byte) int64 {
	return int64(crc32.Update(crc32.Checksum(c, castagnoli), castagnoli, body))
}

// sum returns the checksum of a snapshot, and in journals up to schema 2 also of an
// event.
func sum(seq, at int64, kind string, body []byte) int64 {
	return row(len(kind), seq, at).text(kind).sum(body)
}

func (d Decision) sum() int64 {
	return row(len(d.Kind), d.Seq, int64(d.N)).text(d.Kind).sum(d.Body)
}

func (t TaskRow) sum() int64 {
	finished := int64(0)
	if t.Finished {
		finished = 1
	}
	size := len(t.Name) + len(t.User) + len(t.Group) + len(t.Phase)
	return row(size, t.ID, finished, t.Submitted, t.Ended).text(t.Name, t.User, t.Group, t.Phase).sum(t.Body)
}

func metaSum(key string, value []byte) int64 { return row(len(key)).text(key).sum(value) }

// link returns the sum of an event. It covers the sum of the previous event, so that no
// event can be removed, inserted or replaced without changing all later sums.
func link(before int64, e Event) int64 {
	b := make([]byte, 0, 32+len(e.Kind)+len(e.Body))
	for _, n := range []int64{before, e.Seq, e.At} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	b = append(append(append(b, e.Kind...), 0), e.Body...)
	s := sha256.Sum256(b)
	return int64(binary.BigEndian.Uint64(s[:8]))
}
