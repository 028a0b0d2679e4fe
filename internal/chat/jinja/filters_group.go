package jinja

import (
	"slices"

	"github.com/foretoken/foretoken/internal/chat/value"
)

// batchFilter cuts a sequence into lists of n items.
func batchFilter(m *machine, v value.Value, p params) (value.Value, error) {
	n, err := p.int(0, 0)
	if err != nil {
		return nil, err
	}
	it, err := m.iterate(v)
	if err != nil {
		return nil, err
	}
	done := false
	return &generator{func() (value.Value, bool, error) {
		if done {
			return nil, false, nil
		}
		var row []value.Value
		for len(row) != n || n <= 0 {
			item, ok, err := it()
			if err != nil {
				return nil, false, err
			}
			if !ok {
				done = true
				break
			}
			if err := m.items(1); err != nil {
				return nil, false, err
			}
			row = append(row, item)
		}
		if len(row) == 0 {
			return nil, false, nil
		}
		if fill := p.or(1, nil); fill != nil && len(row) < n {
			more, err := m.repeatItems([]value.Value{fill}, n-len(row))
			if err != nil {
				return nil, false, err
			}
			row = append(row, more...)
		}
		return &value.List{Items: row}, true, nil
	}}, nil
}

// sliceFilter cuts a sequence into n lists of about the same length.
func sliceFilter(m *machine, v value.Value, p params) (value.Value, error) {
	n, err := p.int(0, 0)
	if err != nil {
		return nil, err
	}
	items, err := m.list(v)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, errorf("ZeroDivisionError", "integer division or modulo by zero")
	}
	if n < 0 {
		return &generator{m.counted(0, nil)}, nil
	}
	size, longer := len(items)/n, len(items)%n
	return &generator{m.counted(n, func(i int) value.Value {
		from := i*size + min(i, longer)
		to := (i+1)*size + min(i+1, longer)
		row := slices.Clone(items[from:to])
		if fill := p.or(1, nil); fill != nil && i >= longer {
			row = append(row, fill)
		}
		return &value.List{Items: row}
	})}, m.items(len(items))
}

// groupbyFilter returns (key, items) for each key, sorted.
func groupbyFilter(m *machine, v value.Value, p params) (value.Value, error) {
	items, err := m.list(v)
	if err != nil {
		return nil, err
	}
	along, def := path(p[0]), p.or(1, nil)
	key := func(item value.Value) (value.Value, error) {
		k, err := m.follow(item, along, def)
		if err != nil || p.truth(2) {
			return k, err
		}
		return m.ignoreCase(k)
	}
	ordered, err := m.sorted(items, false, key)
	if err != nil {
		return nil, err
	}
	groups := new(value.List)
	var lastKey value.Value
	for i, item := range ordered.(*value.List).Items {
		k, err := key(item)
		if err != nil {
			return nil, err
		}
		same := false
		if i > 0 {
			if same, err = m.equal(lastKey, k); err != nil {
				return nil, err
			}
		}
		if !same {
			shown, err := m.follow(item, along, def)
			if err != nil {
				return nil, err
			}
			groups.Items = append(groups.Items, &value.Tuple{
				Items:  []value.Value{shown, &value.List{}},
				Fields: []string{"grouper", "list"},
			})
			lastKey = k
		}
		group := groups.Items[len(groups.Items)-1].(*value.Tuple).Items[1].(*value.List)
		group.Items = append(group.Items, item)
		if err := m.items(4); err != nil {
			return nil, err
		}
	}
	return groups, nil
}
