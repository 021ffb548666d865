-- Hands an online message to whichever replica holds the device, or keeps it for the replica that will.
-- KEYS: channel, waiting list, bytes of the list.  ARGV: signal, time to live (ms), most messages, most bytes.
if redis.call('SPUBLISH', KEYS[1], ARGV[1]) > 0 then
  return 1
end
redis.call('RPUSH', KEYS[2], ARGV[1])
local bytes = redis.call('INCRBY', KEYS[3], #ARGV[1])
while bytes > tonumber(ARGV[4]) or redis.call('LLEN', KEYS[2]) > tonumber(ARGV[3]) do
  local oldest = redis.call('LPOP', KEYS[2])
  if not oldest then
    redis.call('DEL', KEYS[3])
    return 0
  end
  bytes = redis.call('DECRBY', KEYS[3], #oldest)
end
redis.call('PEXPIRE', KEYS[2], ARGV[2])
redis.call('PEXPIRE', KEYS[3], ARGV[2])
return 0
