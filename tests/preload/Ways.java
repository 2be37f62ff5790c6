// One way of a Java program to change a file and to sync it: a row of the table in ways_test.cc, as
// ways.c.
//
//   java Ways FILE CHANGE SYNC END
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;

public class Ways {
  static final int SIZE = 1 << 20;
  static final byte[] NEW = "newdata\0".getBytes();

  public static void main(String[] arguments) throws Exception {
    try {
      run(arguments);
    } catch (java.io.IOException | java.io.UncheckedIOException error) {
      System.out.println("refused: " + error);
      System.exit(9);
    }
  }

  static void run(String[] arguments) throws Exception {
    final String name = arguments[0];
    final FileChannel file = FileChannel.open(Path.of(name), StandardOpenOption.CREATE,
        StandardOpenOption.READ, StandardOpenOption.WRITE);
    final byte[] old = new byte[SIZE];
    Arrays.fill(old, (byte) 'o');
    file.write(ByteBuffer.wrap(old), 0);
    final MappedByteBuffer memory = file.map(FileChannel.MapMode.READ_WRITE, 0, SIZE);
    file.force(true);
    file.force(true);

    switch (arguments[1]) {
      case "put" -> memory.put(0, NEW);
      case "write" -> file.write(ByteBuffer.wrap(NEW), 0);
      case "rws", "rwd" -> {
        try (RandomAccessFile other = new RandomAccessFile(name, arguments[1])) {
          other.write(NEW);
        }
      }
      case "transfer" -> {
        final Path made = Path.of(name + ".new");
        java.nio.file.Files.write(made, NEW);
        try (FileChannel from = FileChannel.open(made)) {
          from.transferTo(0, NEW.length, file.position(0));
        }
      }
      default -> System.exit(2);
    }
    switch (arguments[2]) {
      case "none" -> { }
      case "force-file" -> file.force(true);
      case "force-data" -> file.force(false);
      case "force-memory" -> memory.force(0, 4096);
      default -> System.exit(2);
    }
    System.out.println("synced");
    System.out.flush();
    if (arguments[3].equals("kill")) {
      new ProcessBuilder("kill", "-9", Long.toString(ProcessHandle.current().pid())).start();
      Thread.sleep(Long.MAX_VALUE);
    }
  }
}
