package jinja

import (
	"errors"
	"strings"

	"github.com/foretoken/foretoken/internal/chat/value"
)

// filterFunc is a filter: v|name(a).
type filterFunc func(m *machine, v value.Value, a args) (value.Value, error)

// filters are Jinja's own with Hugging Face's tojson; those for web pages and random are left out.
var filters = map[string]filterFunc{}

func init() { // in init because map applies filters
	for _, f := range []struct {
		names     string
		signature string // as bind wants it
		apply     func(m *machine, v value.Value, p params) (value.Value, error)
	}{
		// text
		{"string", "", stringFilter},
		{"safe", "", safeFilter},
		{"escape e", "", escapeFilter},
		{"forceescape", "", forceEscapeFilter},
		{"upper", "", textFilter(upper)},
		{"lower", "", textFilter(lower)},
		{"capitalize", "", textFilter(capitalize)},
		{"title", "", textFilter(titleFilter)},
		{"trim", "chars?", trimFilter},
		{"replace", "old new count?", replaceFilter},
		{"indent", "width? first? blank?", indentFilter},
		{"center", "width?", centerFilter},
		{"truncate", "length? killwords? end? leeway?", truncateFilter},
		{"wordcount", "", wordCountFilter},
		{"join", "d? attribute?", joinFilter},
		// values
		{"tojson", "ensure_ascii? indent? separators? sort_keys?", tojsonFilter},
		{"default d", "default_value? boolean?", defaultFilter},
		{"attr", "name", attrFilter},
		{"int", "default? base?", intFilter},
		{"float", "default?", floatFilter},
		{"abs", "", absFilter},
		{"round", "precision? method?", roundFilter},
		{"sum", "attribute? start?", sumFilter},
		// sequences
		{"length count", "", lengthFilter},
		{"first", "", firstFilter},
		{"last", "", lastFilter},
		{"list", "", listFilter},
		{"items", "", itemsFilter},
		{"dictsort", "case_sensitive? by? reverse?", dictsortFilter},
		{"sort", "reverse? case_sensitive? attribute?", sortFilter},
		{"reverse", "", reverseFilter},
		{"unique", "case_sensitive? attribute?", uniqueFilter},
		{"min", "case_sensitive? attribute?", extremeFilter("<", -1)},
		{"max", "case_sensitive? attribute?", extremeFilter(">", 1)},
		{"batch", "linecount fill_with?", batchFilter},
		{"slice", "slices fill_with?", sliceFilter},
		{"groupby", "attribute default? case_sensitive?", groupbyFilter},
	} {
		for name := range strings.FieldsSeq(f.names) {
			filters[name] = func(m *machine, v value.Value, a args) (value.Value, error) {
				p, err := a.bind(name, f.signature)
				if err != nil {
					return nil, err
				}
				return f.apply(m, v, p)
			}
		}
	}
	// with any arguments
	filters["format"] = formatFilter
	filters["map"] = mapFilter
	filters["select"] = selectFilter(true, false)
	filters["reject"] = selectFilter(false, false)
	filters["selectattr"] = selectFilter(true, true)
	filters["rejectattr"] = selectFilter(false, true)
}

// filter applies the filter of a name.
func (m *machine) filter(name string, v value.Value, a args) (value.Value, error) {
	f := filters[name]
	if f == nil {
		return nil, errorf("TemplateRuntimeError", "No filter named '%s'.", name)
	}
	if err := m.step(1); err != nil {
		return nil, err
	}
	return f(m, v, a)
}

// tojsonFilter is json.dumps with its four arguments.
func tojsonFilter(m *machine, v value.Value, p params) (value.Value, error) {
	d := value.Dumps{ASCII: p.truth(0), SortKeys: p.truth(3), Limit: m.limits.Text}
	switch indent := p.or(1, nil); {
	case indent == nil:
	default:
		d.Multiline = true
		if s, ok := str(indent); ok {
			d.Indent = s
			break
		}
		n, err := p.int(1, 0)
		if err != nil {
			return nil, err
		}
		if d.Indent, err = m.repeatText(" ", n); err != nil {
			return nil, err
		}
	}
	if sep := p.or(2, nil); sep != nil {
		pair, err := m.unpack(sep, 2)
		if err != nil {
			return nil, err
		}
		item, ok1 := str(pair[0])
		key, ok2 := str(pair[1])
		if !ok1 || !ok2 {
			return nil, typeErrorf("separators must be strings")
		}
		d.Separators = &[2]string{item, key}
	}
	b, err := d.Append(nil, v)
	var typeErr *value.TypeError
	switch {
	case errors.Is(err, value.ErrLimit):
		return nil, m.allocText(-1)
	case errors.As(err, &typeErr):
		return nil, typeErrorf("%s", typeErr.Message)
	case err != nil:
		return nil, valueErrorf("%v", err)
	}
	return string(b), m.allocText(len(b))
}

func defaultFilter(m *machine, v value.Value, p params) (value.Value, error) {
	if _, ok := v.(*undefined); ok || p.truth(1) && !truth(v) {
		return p.or(0, ""), nil
	}
	return v, nil
}

// attrFilter returns an attribute, never an item.
func attrFilter(m *machine, v value.Value, p params) (value.Value, error) {
	name, err := p.str(0, "")
	if err != nil {
		return nil, err
	}
	if u, ok := v.(*undefined); ok {
		return nil, u.fail()
	}
	if x, ok, err := m.native(v, name); ok || err != nil {
		return x, err
	}
	return missing(v, name), nil
}

// path is what the attribute argument of filters names: "a.b.0" is item by item.
func path(v value.Value) []value.Value {
	s, ok := str(v)
	if !ok {
		if v == nil {
			return nil
		}
		return []value.Value{v}
	}
	var parts []value.Value
	for part := range strings.SplitSeq(s, ".") {
		if n := parseInt(part, 10); n != nil && strTests["isdigit"](part) {
			parts = append(parts, n)
		} else {
			parts = append(parts, part)
		}
	}
	return parts
}

// follow goes along a path. Where it ends in nothing, def takes the place, unless it is nil.
func (m *machine) follow(v value.Value, path []value.Value, def value.Value) (value.Value, error) {
	for _, part := range path {
		var err error
		if v, err = m.item(v, part); err != nil {
			return nil, err
		}
		if _, ok := v.(*undefined); ok && def != nil {
			v = def
		}
	}
	return v, nil
}

// ignoreCase is what filters compare instead of v unless they are told to be case-sensitive.
func (m *machine) ignoreCase(v value.Value) (value.Value, error) {
	if s, ok := str(v); ok {
		return lower(s), m.alloc(len(s))
	}
	return v, nil
}
