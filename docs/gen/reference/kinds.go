package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// The tables stand between these two lines of json.md.
const (
	kindsBegin = "<!-- The kinds: written by docs/gen from json-schema.json. -->\n"
	kindsEnd   = "<!-- End of the kinds. -->\n"
)

// withKinds returns the page with a section for each kind of the schema, in the schema's order.
func withKinds(page string, schema []byte) (string, error) {
	before, rest, found := strings.Cut(page, kindsBegin)
	_, after, foundEnd := strings.Cut(rest, kindsEnd)
	if !found || !foundEnd {
		return "", fmt.Errorf("the page lacks the lines %q and %q", kindsBegin, kindsEnd)
	}
	var root struct {
		Properties struct {
			Kind struct{ Enum []string }
		}
		Defs map[string]definition `json:"$defs"`
	}
	if err := json.Unmarshal(schema, &root); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(before + kindsBegin)
	for _, kind := range root.Properties.Kind.Enum {
		def, ok := root.Defs[kind]
		if !ok {
			return "", fmt.Errorf("the schema has no definition of the kind %s", kind)
		}
		if err := writeKind(&b, kind, def); err != nil {
			return "", err
		}
	}
	b.WriteString("\n" + kindsEnd + after)
	return b.String(), nil
}

// definition is what a property or a kind may have in the schema. Properties stay raw, since their order matters.
type definition struct {
	Title       string
	Description string
	Type        any
	Enum        []any
	Ref         string `json:"$ref"`
	AnyOf       []definition
	Items       *definition
	Properties  json.RawMessage
}

func writeKind(b *strings.Builder, kind string, def definition) error {
	fmt.Fprintf(b, "\n### %s\n\nFrom `kseg %s`. %s\n", kind, def.Title, def.Description)
	names, defs, err := ordered(def.Properties)
	if err != nil || len(names) == 0 {
		return err
	}
	b.WriteString("\n| name | value | |\n|---|---|---|\n")
	for i, name := range names {
		value, err := valueText(defs[i])
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, value, defs[i].Description)
	}
	return nil
}

// valueText words a type: "number or null", "one of `hot`, `cold`", "list of {position, size}".
func valueText(def definition) (string, error) {
	switch {
	case def.Ref == "#/$defs/bytes":
		return "bytes", nil
	case def.Ref == "#/$defs/setting":
		return "{value, source, key, from}", nil
	case len(def.Enum) > 0:
		return enumText(def.Enum), nil
	case len(def.AnyOf) == 2:
		text, err := valueText(def.AnyOf[0])
		return text + " or null", err
	case def.Type == nil:
		return "any", nil
	}
	var words []string
	for _, name := range typeNames(def.Type) {
		word := map[string]string{"integer": "number", "boolean": "true or false", "array": "list"}[name]
		switch {
		case name == "array" && def.Items != nil:
			item, err := valueText(*def.Items)
			if err != nil {
				return "", err
			}
			word = "list of " + item
		case name == "object" && def.Properties != nil:
			names, _, err := ordered(def.Properties)
			if err != nil {
				return "", err
			}
			if len(names) > 0 {
				word = "{" + strings.Join(names, ", ") + "}"
			}
		}
		if word == "" {
			word = name
		}
		words = append(words, word)
	}
	return strings.Join(words, " or "), nil
}

func enumText(values []any) string {
	var words []string
	for _, value := range values {
		if value == nil {
			words = append(words, "null")
			continue
		}
		words = append(words, fmt.Sprintf("`%v`", value))
	}
	return strings.Join(words, ", ")
}

// typeNames reads "type", which is a name or a list of names.
func typeNames(value any) []string {
	list, ok := value.([]any)
	if !ok {
		return []string{fmt.Sprint(value)}
	}
	var names []string
	for _, name := range list {
		names = append(names, fmt.Sprint(name))
	}
	return names
}

// ordered decodes the members of an object of definitions in the order of the text.
func ordered(object json.RawMessage) (names []string, defs []definition, err error) {
	if len(object) == 0 {
		return nil, nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(object))
	if _, err := decoder.Token(); err != nil {
		return nil, nil, err
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, nil, err
		}
		var def definition
		if err := decoder.Decode(&def); err != nil {
			return nil, nil, err
		}
		names = append(names, fmt.Sprint(name))
		defs = append(defs, def)
	}
	return names, defs, nil
}
