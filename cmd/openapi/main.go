// Command openapi prints the API's OpenAPI document, with an example request for curl in
// each description. make docs uses it.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"carma/runner"
)

func main() {
	document, err := withExamples()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(document)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}

// withExamples returns the API's document with an example of each request.
func withExamples() (map[string]any, error) {
	text, err := runner.OpenAPI()
	if err != nil {
		return nil, err
	}
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	for path, methods := range document["paths"].(map[string]any) {
		for method, operation := range methods.(map[string]any) {
			operation := operation.(map[string]any)
			about, _ := operation["description"].(string)
			summary, _ := operation["summary"].(string)
			operation["description"] = cmp.Or(about, summary) + "\n\n```\n" + curl(method, path) + "\n```\n"
		}
	}
	return document, nil
}

// curl returns an example of a request.
func curl(method, path string) string {
	line := "curl --unix-socket /run/carma/carma.sock"
	if method != "get" {
		line += " -X " + strings.ToUpper(method)
	}
	if body := bodies[method+" "+path]; body != "" {
		line += " -H 'Content-Type: application/json' \\\n  -d '" + strings.ReplaceAll(body, "'", `'\''`) + "'"
	}
	path = strings.NewReplacer("{task}", "17", "{suite}", "mixed", "{group}", "sweep", "{helper}", "db", "{id}", "3", "{", "", "}", "").Replace(path)
	return line + " http://carma" + path
}
