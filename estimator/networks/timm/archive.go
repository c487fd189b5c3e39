package timm

import (
	"bytes"
	"compress/flate"
	_ "embed"
	"encoding/gob"
	"io"
	"slices"
	"strings"
	"sync"

	"carma/configs/models"
)

//go:embed tables.bin
var embedded []byte

// archive is the content of tables.bin, which encoding/gob writes.
type archive struct {
	Provenance string
	Chunks     []chunk
}

// chunk contains the tables of some models, sorted by name, as deflated gob values.
// Models with similar names have similar tables, which compress better together.
type chunk struct {
	Names  []string
	Tables []byte
}

// perChunk is the largest number of tables that are read for one model.
const perChunk = 4

var tables = sync.OnceValue(func() *archive {
	var a archive
	if err := gob.NewDecoder(bytes.NewReader(embedded)).Decode(&a); err != nil {
		panic("timm's tables: " + err.Error()) // a test ensures that this cannot happen
	}
	return &a
})

// chunk returns the chunk with the table of a model, or nil.
func (a *archive) chunk(name string) *chunk {
	i := slices.IndexFunc(a.Chunks, func(c chunk) bool { return c.Names[len(c.Names)-1] >= name })
	if i < 0 || !slices.Contains(a.Chunks[i].Names, name) {
		return nil
	}
	return &a.Chunks[i]
}

func (a *archive) table(name string) (*Table, error) {
	c := a.chunk(name)
	if c == nil {
		return nil, ErrNotFound
	}
	d := gob.NewDecoder(flate.NewReader(bytes.NewReader(c.Tables)))
	for {
		var t Table
		if err := d.Decode(&t); err != nil {
			return nil, err
		}
		if t.Name == name {
			turn(t.Layers)
			return &t, nil
		}
	}
}

// Write writes a file of tables.
func Write(w io.Writer, provenance string, all []Table) error {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b Table) int { return strings.Compare(a.Name, b.Name) })
	a := archive{Provenance: provenance}
	for some := range slices.Chunk(all, perChunk) {
		var packed bytes.Buffer
		z, err := flate.NewWriter(&packed, flate.BestCompression)
		if err != nil {
			return err
		}
		c, e := chunk{}, gob.NewEncoder(z)
		for _, t := range some {
			turn(t.Layers)
			err := e.Encode(t)
			turn(t.Layers)
			if err != nil {
				return err
			}
			c.Names = append(c.Names, t.Name)
		}
		if err := z.Close(); err != nil {
			return err
		}
		c.Tables = packed.Bytes()
		a.Chunks = append(a.Chunks, c)
	}
	return gob.NewEncoder(w).Encode(a)
}

// turn converts indexes of inputs to distances from their layer, which need less space in
// the file, or converts distances back.
func turn(layers []models.Layer) {
	for i := range layers {
		for k, in := range layers[i].Inputs {
			layers[i].Inputs[k] = i - in
		}
	}
}
