package jinja

import (
	"math"
	"math/bits"

	"github.com/foretoken/foretoken/internal/chat/value"
)

var dictMethods = map[string]methodFunc{
	"get": func(m *machine, self value.Value, a args) (value.Value, error) {
		p, err := a.bind("get", "key default?")
		if err != nil {
			return nil, err
		}
		v, found, hashable := self.(*value.Object).GetKey(p[0])
		if !hashable {
			return nil, typeErrorf("unhashable type: '%s'", typeName(p[0]))
		}
		if !found {
			v = p.or(1, nil)
		}
		return v, nil
	},
	"keys":   dictView("keys"),
	"values": dictView("values"),
	"items":  dictView("items"),
	"copy": func(m *machine, self value.Value, a args) (value.Value, error) {
		_, err := a.bind("copy", "")
		return self, err // nothing can change it
	},
}

func dictView(kind string) methodFunc {
	return func(m *machine, self value.Value, a args) (value.Value, error) {
		_, err := a.bind(kind, "")
		return &view{self.(*value.Object), kind}, err
	}
}

// sequenceMethods are those of lists, tuples and ranges.
var sequenceMethods = map[string]methodFunc{
	"count": func(m *machine, self value.Value, a args) (value.Value, error) {
		p, err := a.bind("count", "value")
		if err != nil {
			return nil, err
		}
		n := int64(0)
		err = m.each(self, func(item value.Value) error {
			eq, err := m.equal(item, p[0])
			if eq {
				n++
			}
			return err
		})
		return n, err
	},
	"index": func(m *machine, self value.Value, a args) (value.Value, error) {
		p, err := a.bind("index", "value start? stop?")
		if err != nil {
			return nil, err
		}
		n, _ := m.length(self)
		lo, hi, _, err := sliceBounds([3]value.Value{p.or(1, nil), p.or(2, nil)}, n)
		if err != nil {
			return nil, err
		}
		for i := lo; i < hi; i++ {
			item, _, err := m.at(self, i)
			if err != nil {
				return nil, err
			}
			if eq, err := m.equal(item, p[0]); err != nil || eq {
				return int64(i), err
			}
		}
		text, err := m.repr(p[0])
		if err != nil {
			return nil, err
		}
		return nil, valueErrorf("%s is not in %s", text, typeName(self))
	},
	"copy": func(m *machine, self value.Value, a args) (value.Value, error) {
		if _, ok := self.(*value.List); !ok {
			return nil, errorf("UndefinedError", "'%s' has no attribute 'copy'", objectName(self))
		}
		_, err := a.bind("copy", "")
		return self, err
	},
}

var intMethods = map[string]methodFunc{
	"bit_length": func(m *machine, self value.Value, a args) (value.Value, error) {
		switch v, _ := number(self); v := v.(type) {
		case int64:
			return int64(bits.Len64(uint64(max(v, -v)))), nil
		default:
			return int64(bigInt(v).BitLen()), nil
		}
	},
	"is_integer": func(m *machine, self value.Value, a args) (value.Value, error) { return true, nil },
}

var floatMethods = map[string]methodFunc{
	"is_integer": func(m *machine, self value.Value, a args) (value.Value, error) {
		f := self.(float64)
		return f == math.Trunc(f) && !math.IsInf(f, 0), nil
	},
}
