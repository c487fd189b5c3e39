// Package described encodes the description of a network that a submission includes. The
// command line reads the user's files and makes descriptions from them. The daemon reads
// only descriptions, no files.
//
// A description is a JSON value: the object of a config.json of the transformers library,
// the object of a model configuration (docs/estimators.md), or a text with such an object
// as gzip in base64. Its size is bounded, packed and unpacked. A config.json may have
// [Weights], a summary of the safetensors files next to it.
package described

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"carma/configs/models"
	"carma/estimator/networks/hf"
)

const (
	// Most is the maximum size of an encoded description in bytes.
	Most = 64 << 10
	// mostUnpacked is the maximum size of a description's object in bytes. A network of
	// 1,000 layers needs some 100 KiB.
	mostUnpacked = 8 << 20
	// packFrom is the least size in bytes of a config.json that is packed. Layers are always
	// packed, because nobody reads them.
	packFrom = 4 << 10
)

// OfConfig describes the network of a config.json by the fields that matter. o are the
// settings for building it. w are the weights next to it, or nil.
func OfConfig(text []byte, w *Weights, o models.Overrides) (json.RawMessage, error) {
	short, err := hf.Compact(text, o)
	if err != nil {
		return nil, err
	}
	if short, err = w.with(short); err != nil {
		return nil, err
	}
	if len(short) <= packFrom {
		return short, nil
	}
	return pack(short)
}

// OfLayers describes a network by its layers.
func OfLayers(c *models.Config) (json.RawMessage, error) {
	var b, short bytes.Buffer
	if err := c.Write(&b); err != nil {
		return nil, err
	}
	if err := json.Compact(&short, b.Bytes()); err != nil {
		return nil, err
	}
	return pack(short.Bytes())
}

// pack compresses an object.
func pack(object []byte) (json.RawMessage, error) {
	var zipped bytes.Buffer
	w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(object); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	packed, err := json.Marshal(base64.StdEncoding.EncodeToString(zipped.Bytes()))
	if err == nil && len(packed) > Most {
		err = tooLarge(len(packed))
	}
	return packed, err
}

func tooLarge(bytes int) error {
	return &models.Error{What: fmt.Sprintf("its description takes %d KiB, at most %d KiB travel with a task; carma estimate takes it, and --mem books its answer", (bytes+1023)>>10, Most>>10)}
}

// unpack returns the object of a description.
func unpack(d json.RawMessage) ([]byte, error) {
	if len(d) > Most {
		return nil, tooLarge(len(d))
	}
	d = bytes.TrimSpace(d)
	if len(d) == 0 || d[0] != '"' {
		return d, nil
	}
	var text string
	if err := json.Unmarshal(d, &text); err != nil {
		return nil, &models.Error{What: "not JSON: " + err.Error()}
	}
	zipped, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, &models.Error{What: "a text that is not base64; give an object, or one as gzip in base64"}
	}
	r, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		return nil, &models.Error{What: "not gzip: " + err.Error()}
	}
	object, err := io.ReadAll(io.LimitReader(r, mostUnpacked+1))
	if err != nil {
		return nil, &models.Error{What: "not gzip: " + err.Error()}
	}
	if len(object) > mostUnpacked {
		return nil, &models.Error{What: fmt.Sprintf("larger than %d MiB unpacked", mostUnpacked>>20)}
	}
	return object, nil
}

// Read builds the network of a description. name is the network's name in messages. kind
// is the model_type of a config.json with the types of its stored weights, or empty if
// the network is described by its layers.
func Read(name string, d json.RawMessage, o models.Overrides) (c *models.Config, kind string, err error) {
	object, err := unpack(d)
	if err != nil {
		return nil, "", err
	}
	if hf.Recognized(object) {
		return readConfig(name, object, o)
	}
	c, err = models.Read("", bytes.NewReader(object))
	if err != nil {
		return nil, "", err
	}
	c.Name = name
	c, err = c.With(o)
	return c, "", err
}

// readConfig is [Read] for the object of a config.json.
func readConfig(name string, object []byte, o models.Overrides) (*models.Config, string, error) {
	w, err := weightsIn(object)
	if err != nil {
		return nil, "", err
	}
	c, err := w.Build(o, func(o models.Overrides) (*models.Config, error) { return hf.Read(name, object, o) })
	kind := hf.Kind(object)
	if w != nil {
		kind = strings.TrimSpace(kind + " stored as " + w.String())
	}
	return c, kind, err
}
