rem A database: 8 KiB, 30 % writes, on two files
diskspd.exe -b8K -d300 -W60 -C10 -o8 -t4 -r -w30 -Sh -Zr -L -D -z42 -c50G D:\data1.dat D:\data2.dat
