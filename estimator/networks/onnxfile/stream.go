package onnxfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"carma/configs/models"
)

// stream reads protobuf fields in sequence. Positions are bytes from the start of
// the file.
type stream struct {
	r    *bufio.Reader
	file io.ReadSeeker // nil: cannot seek
	base int64         // position in the file at the start
	at   int64
	kept int64 // bytes of names and lists in memory
}

// newStream returns a stream and its end; math.MaxInt64: unknown until it is
// reached.
func newStream(r io.Reader) (*stream, int64) {
	s := &stream{r: bufio.NewReaderSize(r, 32<<10)}
	f, ok := r.(io.ReadSeeker)
	if !ok {
		return s, math.MaxInt64
	}
	base, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return s, math.MaxInt64
	}
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return s, math.MaxInt64
	}
	if _, err := f.Seek(base, io.SeekStart); err != nil {
		return s, math.MaxInt64
	}
	s.file, s.base = f, base
	return s, end - base
}

func (s *stream) damaged(format string, args ...any) error {
	return fault("damaged or cut off at byte %d: %s; export it again", s.at, fmt.Sprintf(format, args...))
}

// cut turns an early end of the file into an error of its own.
func (s *stream) cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return s.damaged("the file ends within a field")
	}
	return err
}

// keep counts the bytes that stay in memory, and fails if they are too many.
func (s *stream) keep(n int64) error {
	if s.kept += n; s.kept > models.MaxFile {
		return fault("more than %d MiB of names and constants besides the weights; no model has that", models.MaxFile>>20)
	}
	return nil
}

func (s *stream) varint(end int64) (uint64, error) {
	b, err := s.r.Peek(10)
	if len(b) == 0 {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.EOF
		}
		return 0, s.cut(err)
	}
	v, n := protowire.ConsumeVarint(b)
	if n < 0 || int64(n) > end-s.at {
		return 0, s.damaged("a number that does not end")
	}
	_, _ = s.r.Discard(n) // it was peeked
	s.at += int64(n)
	return v, nil
}

// length reads the length of a field and returns where the field ends.
func (s *stream) length(end int64) (int64, error) {
	n, err := s.varint(end)
	if err != nil {
		return 0, err
	}
	if n > uint64(end-s.at) {
		return 0, s.damaged("a field of %d bytes in a part that has %d", n, end-s.at)
	}
	return s.at + int64(n), nil
}

func (s *stream) skip(n int64) error {
	if s.file != nil && n > int64(s.r.Buffered()) {
		s.at += n
		if _, err := s.file.Seek(s.base+s.at, io.SeekStart); err != nil {
			return err
		}
		s.r.Reset(s.file)
		return nil
	}
	for n > 0 {
		d, err := s.r.Discard(int(min(n, 1<<30)))
		s.at += int64(d)
		if n -= int64(d); err != nil {
			return s.cut(err)
		}
	}
	return nil
}

// bytes reads up to end in pieces, so that a wrong length allocates nothing.
func (s *stream) bytes(end int64) ([]byte, error) {
	if err := s.keep(end - s.at); err != nil {
		return nil, err
	}
	var out []byte
	for s.at < end {
		part := make([]byte, min(end-s.at, 32<<10))
		n, err := io.ReadFull(s.r, part)
		if s.at += int64(n); err != nil {
			return nil, s.cut(err)
		}
		if out == nil {
			out = part
		} else {
			out = append(out, part...)
		}
	}
	return out, nil
}

// text reads a string field.
func (s *stream) text(end int64) (string, error) {
	end, err := s.length(end)
	if err != nil {
		return "", err
	}
	b, err := s.bytes(end)
	return string(b), err
}

// field is one field of a message. Its value is not read yet.
type field struct {
	number protowire.Number
	kind   protowire.Type
	end    int64 // of the enclosing message
}

// is tells whether the field has this number and type. A field of another type is
// skipped, as protobuf does.
func (f field) is(n protowire.Number, t protowire.Type) bool { return f.number == n && f.kind == t }

// message reads fields up to end. It skips a field for which read returns false.
func (s *stream) message(end int64, read func(f field) (bool, error)) error {
	for s.at < end {
		if end == math.MaxInt64 {
			if _, err := s.r.Peek(1); errors.Is(err, io.EOF) {
				return nil
			}
		}
		tag, err := s.varint(end)
		if err != nil {
			return err
		}
		number, kind := protowire.DecodeTag(tag)
		if number < 1 {
			return s.damaged("field number %d", tag>>3)
		}
		f := field{number, kind, end}
		took, err := read(f)
		if err == nil && !took {
			err = s.other(f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// other skips the value of a field.
func (s *stream) other(f field) error {
	switch f.kind {
	case protowire.VarintType:
		_, err := s.varint(f.end)
		return err
	case protowire.BytesType:
		end, err := s.length(f.end)
		if err != nil {
			return err
		}
		return s.skip(end - s.at)
	case protowire.Fixed32Type, protowire.Fixed64Type:
		n := int64(4)
		if f.kind == protowire.Fixed64Type {
			n = 8
		}
		if n > f.end-s.at {
			return s.damaged("a number that does not end")
		}
		return s.skip(n)
	}
	return s.damaged("wire type %d, which ONNX does not use", f.kind)
}

// sub reads a field that is a message itself.
func (s *stream) sub(f field, read func(f field) (bool, error)) error {
	end, err := s.length(f.end)
	if err != nil {
		return err
	}
	return s.message(end, read)
}
