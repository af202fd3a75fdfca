# Depths one after another
diskspd -b4K -d30 -W5 -r -w0 -o1 -t1 -Sh -L /dev/sdx
diskspd -b4K -d30 -W5 -r -w0 -o2 -t1 -Sh -L /dev/sdx
diskspd -b4K -d30 -W5 -r -w0 -o4 -t1 -Sh -L /dev/sdx
diskspd -b4K -d30 -W5 -r -w0 -o8 -t1 -Sh -L /dev/sdx
diskspd -b4K -d30 -W5 -r -w0 -o16 -t1 -Sh -L /dev/sdx
diskspd -b4K -d30 -W5 -r -w0 -o32 -t1 -Sh -L /dev/sdx
