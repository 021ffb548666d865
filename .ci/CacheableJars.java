import java.io.BufferedOutputStream;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassFileVersion;
import java.lang.classfile.ClassHierarchyResolver;
import java.lang.classfile.ClassModel;
import java.lang.classfile.CodeBuilder;
import java.lang.classfile.MethodModel;
import java.lang.classfile.MethodTransform;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.jar.Manifest;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;

/**
 * {@code CLASSPATH FOLDER}: prints the class path with copies, in the folder, of the jars that have classes which the
 * JVM puts into no cache. The JVM verifies classes of before Java 6 at every start by inference: a copy has the same
 * code with the stack maps of Java 8, so that verification is as strict, and done when the cache is made. It hashes
 * classes of signed jars at every start: a copy has no signature, as the build has compared the jar's hash with the
 * committed one.
 */
final class CacheableJars {
  private static final int MAGIC_AND_VERSION = 8;
  private static final int FIRST_WITH_STACK_MAPS = ClassFile.JAVA_6_VERSION;

  public static void main(String[] args) throws IOException {
    List<String> result = new ArrayList<>();
    List<URL> all = new ArrayList<>();
    String[] jars = args[0].split(File.pathSeparator);
    for (String jar : jars) {
      all.add(Path.of(jar).toUri().toURL());
    }
    Path folder = Files.createDirectories(Path.of(args[1]));
    try (URLClassLoader types = new URLClassLoader(all.toArray(URL[]::new), ClassLoader.getPlatformClassLoader())) {
      ClassFile classFile =
          ClassFile.of(
              ClassFile.StackMapsOption.GENERATE_STACK_MAPS,
              ClassFile.ClassHierarchyResolverOption.of(
                  ClassHierarchyResolver.ofResourceParsing(types).orElse(ClassHierarchyResolver.defaultResolver())));
      for (String jar : jars) {
        Path copy = folder.resolve(Path.of(jar).getFileName());
        result.add(isSigned(jar) || hasOldClasses(jar) ? copy(classFile, jar, copy).toString() : jar);
      }
    }
    System.out.println(String.join(File.pathSeparator, result));
  }

  private static boolean isSigned(String jar) throws IOException {
    try (JarFile file = new JarFile(jar, false)) {
      return Collections.list(file.entries()).stream().anyMatch(entry -> isOfSignature(entry.getName()));
    }
  }

  /** A file of the signature itself. The manifest has a hash of each class too, beside the attributes of the jar. */
  private static boolean isOfSignature(String name) {
    return name.matches("META-INF/[^/]+\\.(SF|RSA|DSA|EC)");
  }

  private static boolean hasOldClasses(String jar) throws IOException {
    try (JarFile file = new JarFile(jar, false)) {
      for (JarEntry entry : Collections.list(file.entries())) {
        if (entry.getName().endsWith(".class")) {
          try (InputStream content = file.getInputStream(entry)) {
            if (isOld(content.readNBytes(MAGIC_AND_VERSION))) {
              return true;
            }
          }
        }
      }
    }
    return false;
  }

  private static boolean isOld(byte[] head) {
    return head.length >= MAGIC_AND_VERSION && ((head[6] & 0xff) << 8 | head[7] & 0xff) < FIRST_WITH_STACK_MAPS;
  }

  private static Path copy(ClassFile classFile, String jar, Path copy) throws IOException {
    try (JarFile in = new JarFile(jar, false);
        OutputStream file = new BufferedOutputStream(Files.newOutputStream(copy));
        ZipOutputStream out = new ZipOutputStream(file)) {
      for (JarEntry entry : Collections.list(in.entries())) {
        if (isOfSignature(entry.getName())) {
          continue;
        }
        byte[] content;
        try (InputStream from = in.getInputStream(entry)) {
          content = from.readAllBytes();
        }
        if (entry.getName().endsWith(".class") && isOld(content)) {
          content = withStackMaps(classFile, classFile.parse(content));
        }
        if (entry.getName().equals(JarFile.MANIFEST_NAME)) {
          content = withoutHashes(content);
        }
        ZipEntry to = new ZipEntry(entry.getName());
        to.setTime(entry.getTime());
        out.putNextEntry(to);
        out.write(content);
        out.closeEntry();
      }
    }
    return copy;
  }

  private static byte[] withoutHashes(byte[] manifest) throws IOException {
    Manifest attributes = new Manifest(new ByteArrayInputStream(manifest));
    attributes.getEntries().clear();
    ByteArrayOutputStream written = new ByteArrayOutputStream();
    attributes.write(written);
    return written.toByteArray();
  }

  private static byte[] withStackMaps(ClassFile classFile, ClassModel old) {
    return classFile.build(
        old.thisClass().asSymbol(),
        built -> {
          built.withVersion(ClassFile.JAVA_8_VERSION, 0);
          old.forEach(
              element -> {
                switch (element) {
                  case ClassFileVersion version -> {}
                  case MethodModel method ->
                      built.transformMethod(method, MethodTransform.transformingCode(CodeBuilder::with));
                  default -> built.with(element);
                }
              });
        });
  }
}
