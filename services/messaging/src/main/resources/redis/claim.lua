-- Makes a connection the one of its device, or confirms that it still is, and takes what waits for it.
-- A later claim has a higher number, also after Redis has forgotten the earlier ones.
-- KEYS: channel, holder, waiting list, bytes of the list.
-- ARGV: number of the claim or 0, nonce of the connection, life of the claim (ms).
-- Returns the number of the newest claim; if that is the caller's, followed by the messages.
local newest = tonumber(redis.call('GET', KEYS[2]) or '0')
local own = tonumber(ARGV[1])
if own > 0 and newest > own then
  return {string.format('%.0f', newest)}
end
if own == 0 then
  local now = redis.call('TIME')
  own = math.max(now[1] * 1000000 + now[2], newest + 1)
  redis.call('SPUBLISH', KEYS[1], 'C' .. ARGV[2] .. string.format('%.0f', own))
end
local number = string.format('%.0f', own)
redis.call('SET', KEYS[2], number, 'PX', ARGV[3])
local result = redis.call('LRANGE', KEYS[3], 0, -1)
redis.call('DEL', KEYS[3], KEYS[4])
table.insert(result, 1, number)
return result
