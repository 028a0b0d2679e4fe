package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

type kongContext = kong.Context

// resolveConfig reads the file of the flag --config, if there is one, for flags
// that neither the command line nor the environment sets. Keys are names of
// flags, with - or _.
func resolveConfig(c *kong.Context) error {
	flags := map[string]*kong.Flag{}
	for _, flag := range c.Selected().Flags {
		for _, name := range append([]string{flag.Name}, flag.Aliases...) {
			flags[name] = flag
		}
	}
	path, _ := c.FlagValue(flags["config"]).(string)
	if path == "" {
		return nil
	}
	values, err := readConfig(path, flags)
	if err != nil {
		return usageError{err}
	}
	c.AddResolver(kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		for _, name := range flag.Envs {
			if os.Getenv(name) != "" {
				return nil, nil
			}
		}
		return values[flag], nil
	}))
	return nil
}

// readConfig returns the values that a file has for flags, as the command line
// would have them: texts, and lists of texts. JSON may be written as YAML.
func readConfig(path string, flags map[string]*kong.Flag) (map[*kong.Flag]any, error) {
	data, err := readInput(path)
	if err != nil {
		return nil, err
	}
	var file map[string]yaml.Node
	if err := yaml.Unmarshal(data, &file); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	values := map[*kong.Flag]any{}
	for _, key := range slices.Sorted(maps.Keys(file)) {
		node := file[key]
		flag := flags[strings.ReplaceAll(key, "_", "-")]
		if flag != nil && (flag.Name == "config" || flag.Name == "help") {
			return nil, fmt.Errorf("%s: line %d: %s cannot be set in a file", path, node.Line, key)
		}
		if flag == nil {
			err := fmt.Errorf("%s: line %d: no flag is named %q", path, node.Line, key)
			if near := nearest(key, slices.Sorted(maps.Keys(flags))); near != "" {
				err = fmt.Errorf("%w, did you mean %s?", err, near)
			}
			return nil, err
		}
		if values[flag] != nil {
			return nil, fmt.Errorf("%s: line %d: %s is there twice", path, node.Line, flag.Name)
		}
		if values[flag], err = configValue(&node, flag); err != nil {
			return nil, fmt.Errorf("%s: line %d: %s: %w", path, node.Line, key, err)
		}
	}
	return values, nil
}

func configValue(n *yaml.Node, flag *kong.Flag) (any, error) {
	list := flag.IsSlice()
	switch {
	case n.Kind == yaml.AliasNode:
		return configValue(n.Alias, flag)
	case n.Kind == yaml.MappingNode && flag.Target.Type() == reflect.TypeFor[speculationConfig]():
		var keys map[string]any // YAML has keys that are no texts, JSON none
		if err := n.Decode(&keys); err != nil {
			return nil, err
		}
		text, err := json.Marshal(keys)
		return string(text), err
	case n.Kind == yaml.ScalarNode && n.Tag != "!!null" && list:
		return []any{n.Value}, nil
	case n.Kind == yaml.ScalarNode && n.Tag != "!!null":
		return n.Value, nil
	case n.Kind == yaml.SequenceNode && list:
		values := []any{}
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode {
				return nil, errors.New("expected a list of texts")
			}
			values = append(values, item.Value)
		}
		return values, nil
	case list:
		return nil, errors.New("expected a value, or a list of them")
	}
	return nil, errors.New("expected one value")
}
