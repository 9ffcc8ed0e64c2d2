package protocol

import (
	"reflect"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A layout says how one version of a request lies on the wire, so that its
// decoded size can be told without decoding it. kmsg has no such description:
// it is learned from the encoder, by changing one field at a time and looking
// at what that changes in the encoded bytes.
type layout struct {
	root     *structLayout
	flexible bool
}

type structLayout struct {
	fields []fieldLayout
	// sizeBytes is the size of the Go struct.
	sizeBytes int
}

type fieldLayout struct {
	kind fieldKind
	// width is a fixed field's size on the wire.
	width int
	// elem and elemBytes are an array's: elem is a pseudo field for scalars.
	elem      *structLayout
	elemBytes int
}

type fieldKind int8

const (
	fixedField    fieldKind = iota
	stringField             // counted: it is copied
	bytesField              // not counted: it points into the frame
	arrayField              // of elem
	structField             // elem, in place
	optionalField           // elem behind a marker byte
)

var layouts [kmsg.MaxKey + 1]atomic.Pointer[[]*layout]

// layoutOf learns a known version's layout on first use. It is nil when the layout
// could not be learned.
func layoutOf(key, version int16) *layout {
	learned := layouts[key].Load()
	if learned != nil && (*learned)[version] != nil {
		return (*learned)[version].orNil()
	}
	l := learn(key, version)
	next := make([]*layout, newestVersion[key]+1)
	if learned != nil {
		copy(next, *learned)
	}
	// Two goroutines may learn at once; what one of them loses is learned again.
	next[version] = l
	layouts[key].Store(&next)
	return l.orNil()
}

// orNil is nil for a layout that could not be learned.
func (l *layout) orNil() *layout {
	if l.root == nil {
		return nil
	}
	return l
}

func learn(key, version int16) *layout {
	req := kmsg.RequestForKey(key)
	req.SetVersion(version)
	v := reflect.ValueOf(req).Elem()
	populate(v)
	p := &prober{req: req, flexible: req.IsFlexible()}
	p.base = req.AppendTo(nil)
	l := &layout{root: p.probeStruct(v), flexible: p.flexible}
	// Trust, but verify: the layout must account for every byte.
	s := sizer{reader: reader{b: p.base, flexible: l.flexible}}
	s.structure(l.root)
	if s.bad || len(s.b) > 0 {
		return &layout{}
	}
	return l
}

// populate gives every slice of structs one element and every pointer to a
// struct a struct, so that all fields are on the wire.
func populate(v reflect.Value) {
	if d, ok := v.Addr().Interface().(interface{ Default() }); ok {
		d.Default()
	}
	for i := range v.NumField() {
		f := v.Field(i)
		switch {
		case isTags(f):
		case f.Kind() == reflect.Struct:
			populate(f)
		case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Struct:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
			populate(f.Index(0))
		case f.Kind() == reflect.Pointer && f.Type().Elem().Kind() == reflect.Struct:
			f.Set(reflect.New(f.Type().Elem()))
			populate(f.Elem())
		}
	}
}

func isTags(f reflect.Value) bool { return f.Type() == reflect.TypeFor[kmsg.Tags]() }

type prober struct {
	req      kmsg.Request
	flexible bool
	base     []byte
}

// encodedWith encodes the request with f set to x, and sets f back.
func (p *prober) encodedWith(f, x reflect.Value) []byte {
	old := reflect.New(f.Type()).Elem()
	old.Set(f)
	f.Set(x)
	out := p.req.AppendTo(nil)
	f.Set(old)
	return out
}

func (p *prober) probeStruct(v reflect.Value) *structLayout {
	s := &structLayout{sizeBytes: int(v.Type().Size())}
	for i := range v.NumField() {
		if f := v.Field(i); !isTags(f) && v.Type().Field(i).Name != "Version" {
			if l, ok := p.probe(f); ok {
				s.fields = append(s.fields, l)
			}
		}
	}
	return s
}

// probe tells how a field lies on the wire; ok is false when it does not, or
// only among the tagged fields.
func (p *prober) probe(f reflect.Value) (l fieldLayout, ok bool) {
	switch t := f.Type(); t.Kind() {
	case reflect.String:
		return fieldLayout{kind: stringField}, p.grows(f, reflect.ValueOf("x"), 1)
	case reflect.Pointer:
		if t.Elem().Kind() == reflect.String {
			x := "x"
			return fieldLayout{kind: stringField}, p.grows(f, reflect.ValueOf(&x), 1)
		}
		return p.probeOptional(f)
	case reflect.Slice:
		return p.probeSlice(f)
	case reflect.Struct:
		s := p.probeStruct(f)
		return fieldLayout{kind: structField, elem: s}, len(s.fields) > 0
	case reflect.Array: // a UUID
		return fieldLayout{width: t.Len()}, p.changes(f, byte(0xa5))
	}
	return fieldLayout{width: int(f.Type().Size())}, p.changes(f, byte(0xa5))
}

// grows says that the encoding with f set to x is n bytes longer. A tagged
// field adds its tag and size as well.
func (p *prober) grows(f, x reflect.Value, n int) bool {
	return len(p.encodedWith(f, x)) == len(p.base)+n
}

// changes says that another value of a fixed field changes the encoding but not
// its length.
func (p *prober) changes(f reflect.Value, fill byte) bool {
	x := reflect.New(f.Type()).Elem()
	switch x.Kind() {
	case reflect.Bool:
		x.SetBool(!f.Bool())
	case reflect.Array:
		for i := range x.Len() {
			x.Index(i).SetUint(uint64(fill))
		}
	case reflect.Float64:
		x.SetFloat(f.Float() + 1)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		x.SetUint(f.Uint() + 1)
	default:
		x.SetInt(f.Int() + 1)
	}
	out := p.encodedWith(f, x)
	return len(out) == len(p.base) && string(out) != string(p.base)
}

// probeSlice compares one element with none and with two: among the tagged
// fields the first element costs more than the second.
func (p *prober) probeSlice(f reflect.Value) (fieldLayout, bool) {
	t := f.Type()
	if t.Elem().Kind() == reflect.Uint8 {
		return fieldLayout{kind: bytesField}, p.grows(f, reflect.ValueOf([]byte{1}), 1)
	}
	list := func(n int) reflect.Value {
		x := reflect.MakeSlice(t, n, n)
		for i := range n {
			if f.Len() > 0 {
				x.Index(i).Set(f.Index(0))
			}
		}
		return x
	}
	none, one, two := len(p.encodedWith(f, reflect.Zero(t))), len(p.encodedWith(f, list(1))), len(p.encodedWith(f, list(2)))
	if one == none || one-none != two-one {
		return fieldLayout{}, false
	}
	l := fieldLayout{kind: arrayField, elemBytes: int(t.Elem().Size())}
	switch t.Elem().Kind() {
	case reflect.Struct:
		l.elem = p.probeStruct(f.Index(0))
	case reflect.String:
		l.elem = &structLayout{fields: []fieldLayout{{kind: stringField}}}
	default:
		l.elem = &structLayout{fields: []fieldLayout{{width: one - none}}}
	}
	return l, true
}

// probeOptional looks for the marker before a struct that may be null: 0xff
// when it is, 1 when it is not.
func (p *prober) probeOptional(f reflect.Value) (fieldLayout, bool) {
	null := p.encodedWith(f, reflect.Zero(f.Type()))
	at := 0
	for at < len(null) && at < len(p.base) && null[at] == p.base[at] {
		at++
	}
	if at >= len(null) || at >= len(p.base) || null[at] != 0xff || p.base[at] != 1 {
		return fieldLayout{}, false
	}
	return fieldLayout{kind: optionalField, elem: p.probeStruct(f.Elem())}, true
}
