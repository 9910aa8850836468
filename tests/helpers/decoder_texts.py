"""Parts of decoders in ONNX's text, in exporters' forms: # is the layer's number, @ the next one's."""

#: Tokens and places, and `bias`: a causal mask of the existing tokens, as in transformers' exports.
EMBEDDED = """
   e = Gather(tokens, input_ids)
   p = Gather(places, position_ids)
   x0 = Add(e, p)
   seen = Cast<to = 1>(attention_mask)
   hidden = Sub(one, seen)
   masked = Mul(hidden, low)
   middle = Constant<value_ints = [1, 2]>()
   mask = Unsqueeze(masked, middle)
   rows = Shape<start = 1, end = 2>(input_ids)
   columns = Shape<start = 1, end = 2>(attention_mask)
   before = Sub(columns, rows)
   all = Squeeze(columns)
   count = Squeeze(rows)
   zero = Constant<value_int = 0>()
   step = Constant<value_int = 1>()
   column = Range(zero, all, step)
   row = Range(zero, count, step)
   own = Add(row, before)
   second = Constant<value_ints = [1]>()
   ends = Unsqueeze(own, second)
   reached = LessOrEqual(column, ends)
   nothing = Sub(one, one)
   causal = Where(reached, nothing, low)
   bias = Add(mask, causal)
"""
#: For layer x#: queries, keys and values in heads, qt#, kt# and vt#.
PROJECTED = """
   q# = MatMul(x#, wq#)
   k# = MatMul(x#, wk#)
   v# = MatMul(x#, wv#)
   qh# = Reshape(q#, heads)
   kh# = Reshape(k#, heads)
   vh# = Reshape(v#, heads)
   qt# = Transpose<perm = [0, 2, 1, 3]>(qh#)
   kt# = Transpose<perm = [0, 2, 1, 3]>(kh#)
   vt# = Transpose<perm = [0, 2, 1, 3]>(vh#)
"""
#: From joined heads to the next layer.
JOINED = """
   joined# = Reshape(back#, width)
   out# = MatMul(joined#, wo#)
   sum# = Add(x#, out#)
   x@ = Tanh(sum#)
"""
#: From qt#, key# and value# to the next layer.
ATTENDED = f"""
   transposed# = Transpose<perm = [0, 1, 3, 2]>(key#)
   scores# = MatMul(qt#, transposed#)
   scaled# = Mul(scores#, scale)
   biased# = Add(scaled#, bias)
   weights# = Softmax<axis = -1>(biased#)
   found# = MatMul(weights#, value#)
   back# = Transpose<perm = [0, 2, 1, 3]>(found#)
{JOINED}"""
