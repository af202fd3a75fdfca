diskspd -b64K -d60 -W5 -o4 -t2 -si -w0 -Su -i50 -j20 F:\scan.dat
diskspd -b4K -d60 -W5 -F4 -O16 -r4K -w50 -Sw -Z1M F:\a.dat F:\b.dat
