diskspd -b4K -d120 -r -rdpct95/5:4/10 -w20 -o32 -t2 -Sh -Zr #1
diskspd -b4K -d120 -rs70 -rdabs90/10G -w20 -o32 -t2 -Sh -Zr -B1G:100G #1
