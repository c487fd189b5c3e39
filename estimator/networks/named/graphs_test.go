package named

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"testing"

	"carma/configs/models"
)

var update = flag.Bool("update", false, "write the hashes anew")

// TestGraphs: all layers of each network are as testdata/graphs.txt has them, at settings that
// change sizes, adapters, checkpointing and heads. It protects against unintended changes of a
// network. After an intended change, -update writes the hashes, and the diff shows which
// networks differ.
func TestGraphs(t *testing.T) {
	on := true
	settings := []models.Overrides{
		{}, {Image: 448, Classes: 7, Batch: 3}, {Sequence: 77, Vocabulary: 999, Target: 33, Precision: models.AMP, Checkpointing: &on},
		{LoRA: 8, Targets: []string{"all-linear"}, DoRA: true}, {LoRA: 4, Bits: 4}, {Head: "sequence-classification"}, {Head: "model"},
	}
	var got bytes.Buffer
	for _, name := range append(All(), "mlp_17x1", "bert_base/squad", "timm/resnet50", "gcn:nodes=1000", "lstm:layers=3") {
		hash := sha256.New()
		for _, o := range settings {
			c, err := Build(name, o)
			if err != nil {
				fmt.Fprintln(hash, err)
			} else if err := json.NewEncoder(hash).Encode(c); err != nil {
				t.Fatal(err)
			}
		}
		fmt.Fprintf(&got, "%s %.6x\n", name, hash.Sum(nil))
	}
	const path = "testdata/graphs.txt"
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	old := bytes.Split(want, []byte("\n"))
	for i, line := range bytes.Split(got.Bytes(), []byte("\n")) {
		if i >= len(old) || !bytes.Equal(line, old[i]) {
			t.Errorf("line %d is %q; go test -run Graphs ./estimator/networks/named -update writes it", i+1, line)
		}
	}
}
