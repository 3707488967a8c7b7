-- SPDX-License-Identifier: MIT
-- Calls, tables, strings, sorting, errors, coroutines; the argument is the size.
local function fib(n) if n<2 then return n end return fib(n-1)+fib(n-2) end
local N = tonumber(arg and arg[1]) or 22
print(fib(N))
local t={} for i=1,N*500 do t[i]={x=i,s=tostring(i)} end
local s=0 for i=1,#t do s=s+t[i].x+#t[i].s end print(s)
local words={} for w in ("the quick brown fox jumps over the lazy dog"):gmatch("%a+") do words[#words+1]=w end
table.sort(words) print(table.concat(words,","))
local h={} for i=1,N*300 do local k="k"..(i%97) h[k]=(h[k] or 0)+i end
local keys={} for k in pairs(h) do keys[#keys+1]=k end table.sort(keys) print(#keys,h[keys[5]])
print((pcall(function() error({code=2}) end)))
print(select('#',string.format("%q %5.2f %s",'a"b',3.14159,"z")))
local co=coroutine.wrap(function(a) for i=1,3 do a=coroutine.yield(a*2) end end) print(co(2),co(3),co(4))
print(string.format("%s",("x"):rep(50)))
