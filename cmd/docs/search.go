package main

import (
	"bytes"
	"encoding/json"
)

// maxText bounds what the index has of one part of a page, in bytes: the search then
// costs a reader some hundred kilobytes, once.
const maxText = 1500

// index is what the search looks through: a script, because a page that was opened from
// a disk may not read other files.
func (s *site) index() []byte {
	type entry struct {
		File  string `json:"f"`
		Page  string `json:"p"`
		Title string `json:"t"`
		Text  string `json:"x"`
	}
	var all []entry
	for _, p := range s.pages {
		for _, x := range p.parts {
			text := x.text
			if len(text) > maxText {
				text = text[:maxText]
			}
			file := p.file
			if x.level > 1 {
				file += "#" + x.anchor
			}
			all = append(all, entry{file, p.short(), x.title, string(bytes.ToValidUTF8([]byte(text), nil))})
		}
	}
	b, err := json.Marshal(all)
	if err != nil {
		panic(err) // strings alone
	}
	return append(append([]byte("const pages = "), b...), ";\n"...)
}
