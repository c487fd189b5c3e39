package zoo

import (
	"strings"
	"testing"

	"carma/configs/models"
)

// TestGraphNetworks: sizes in the name make the network that torch_geometric makes.
func TestGraphNetworks(t *testing.T) {
	for name, want := range map[string]int64{
		"gcn":                         109096,
		"gat":                         141160,
		"gcn:hidden=256,features=128": 109096,
		// Two layers: (1433 + 1) x 16 and (16 + 1) x 7.
		"gcn:nodes=2708,edges=10556,features=1433,hidden=16,layers=2,classes=7": 23063,
	} {
		if got := build(t, name, models.Overrides{}).Params(); got != want {
			t.Errorf("%s has %d parameters, want %d", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"gcn:node=3":               `gcn has no size "node"; the nearest: nodes`,
		"gcn:nodes=":               `gcn: nodes is "", want 1 to`,
		"gcn:nodes=99999999999999": `gcn: nodes is "99999999999999", want 1 to`,
		"gcn:nodes=1,nodes=2":      "gcn: nodes is given twice",
		"gcn:heads=2":              `gcn has no size "heads"`,
		"gat:heads=3":              "3 heads do not divide the width 256",
		"resnet50:nodes=3":         "resnet50 takes no sizes behind a colon",
	} {
		if _, err := Build(name, models.Overrides{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}
