-- The requests of `wrk`: a picture each, and one in a given number crashes the decoder.

local plain, crash, every
local count = 0

function init(arguments)
  local file = assert(io.open(arguments[1], "rb"))
  wrk.method = "POST"
  wrk.body = file:read("*a")
  file:close()
  every = tonumber(arguments[2])
  plain = wrk.format(nil, "/thumbnail")
  crash = wrk.format(nil, "/thumbnail?crash")
end

function request()
  count = count + 1
  if every > 0 and count % every == 0 then
    return crash
  end
  return plain
end
