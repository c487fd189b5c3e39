package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"carma/runner"
)

// TestExamples: each request with a body has an example, and its schema accepts the example.
func TestExamples(t *testing.T) {
	text, err := runner.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	schemas := jsonschema.NewCompiler()
	schemas.AssertFormat()
	if err := schemas.AddResource("api.json", document); err != nil {
		t.Fatal(err)
	}
	validate := func(schema, example string) error {
		s, err := schemas.Compile("api.json#" + schema)
		if err != nil {
			t.Fatal(err)
		}
		body, err := jsonschema.UnmarshalJSON(strings.NewReader(example))
		if err != nil {
			return err
		}
		return s.Validate(body)
	}
	known := map[string]bool{}
	for path, methods := range document.(map[string]any)["paths"].(map[string]any) {
		for method, operation := range methods.(map[string]any) {
			if operation.(map[string]any)["requestBody"] == nil {
				continue
			}
			at := method + " " + path
			known[at] = true
			escaped := strings.NewReplacer("/", "~1", "{", "%7B", "}", "%7D").Replace(path)
			if err := validate("/paths/"+escaped+"/"+method+"/requestBody/content/application~1json/schema", bodies[at]); err != nil {
				t.Errorf("%s: %v", at, err)
			}
		}
	}
	for at := range bodies {
		if !known[at] {
			t.Errorf("%s is not a request with a body", at)
		}
	}
	for _, wrong := range []string{`{"task": 1, "image": "a"}`, `{}`} {
		if validate("/components/schemas/Submission", wrong) == nil {
			t.Errorf("the schema accepts %s", wrong)
		}
	}
}
