package hf

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"carma/configs/models"
	"carma/estimator/networks/graph"
	"carma/internal/suggest"
)

// head returns the head that is trained: the requested one, else the head of the class in
// architectures, else the first of known, the heads of the architecture. A number of
// classes selects a head with classes.
func (f *fields) head(o models.Overrides, known ...string) string {
	if o.Head != "" {
		if !slices.Contains(known, o.Head) {
			f.fail("head", "%s; a %s has %s", models.Short(o.Head), f.text("model_type", "model"), strings.Join(suggest.Names(o.Head, known, len(known)), ", "))
		}
		return o.Head
	}
	head := f.ownHead(known)
	if o.Classes > 0 && !graph.HasClasses(head) {
		for _, k := range known {
			if graph.HasClasses(k) {
				return k
			}
		}
	}
	return head
}

// ownHead returns the head of the configuration.
func (f *fields) ownHead(known []string) string {
	named, _ := f.value("architectures")
	list, _ := named.([]any)
	for _, one := range list {
		class, _ := one.(string)
		if at := strings.LastIndex(class, "For"); at >= 0 { // the last: MaskFormer has one too
			if head := kebab(class[at+len("For"):]); slices.Contains(known, head) {
				return head
			}
			f.notes = append(f.notes, "the last layers of "+models.Clip(class)+" are not known here: those of "+known[0]+" are counted")
		} else if strings.HasSuffix(class, "Model") && slices.Contains(known, graph.BaseModel) {
			return graph.BaseModel
		}
	}
	return known[0]
}

// kebab converts names like MaskedLM to masked-lm.
func kebab(class string) string {
	var b strings.Builder
	before := rune(0)
	for _, r := range class {
		if unicode.IsUpper(r) && unicode.IsLower(before) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
		before = r
	}
	return b.String()
}

// classes returns the number of classes of the configuration: the library's default is 2.
// If the configuration names the labels, their number replaces num_labels.
func (f *fields) classes() int64 {
	if labels, ok := f.values["id2label"].(map[string]any); ok && len(labels) > 0 {
		f.values["num_labels"] = json.Number(strconv.Itoa(len(labels)))
	}
	return f.whole("num_labels", 2)
}
