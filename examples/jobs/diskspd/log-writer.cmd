# One writer in sequence, 32 KiB, 300 I/Os per second
diskspd -b32K -d120 -W10 -o1 -t1 -s -w100 -Sh -g300i -Zr -L E:\log.dat
