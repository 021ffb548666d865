package io.coterie.mpc;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Reads the C header and compares it with what the binding believes. */
class HeaderDriftTest {
  private static String header;

  @BeforeAll
  static void read() throws IOException {
    header =
        Files.readString(Path.of("../mpc-core/abi/include/coterie_mpc.h"))
            .replaceAll("(?s)/\\*.*?\\*/", "");
  }

  private static Map<String, Integer> constants() {
    Map<String, Integer> constants = new TreeMap<>();
    Matcher m = Pattern.compile("#define (MPC_\\w+) (\\d+)").matcher(header);
    while (m.find()) {
      constants.put(m.group(1), Integer.parseInt(m.group(2)));
    }
    return constants;
  }

  @Test
  void every_code_has_its_reason_and_every_reason_its_code() {
    Map<String, Integer> codes = constants();
    assertThat(codes.remove("MPC_ABI_VERSION")).isEqualTo(NativeBindings.ABI_VERSION);
    assertThat(codes.remove("MPC_MAX_INPUT")).isEqualTo(NativeBindings.MAX_INPUT);
    assertThat(codes.remove("MPC_MAX_PRESIGNATURES")).isEqualTo(Vault.MAX_PRESIGNATURES);
    assertThat(codes.remove("MPC_MAX_STATEMENT")).isEqualTo(Vault.MAX_STATEMENT);
    assertThat(codes.remove("MPC_OK")).isEqualTo(NativeBindings.OK);
    for (Protection protection : Protection.values()) {
      assertThat(codes.remove("MPC_PROTECTED_" + protection)).isEqualTo(protection.bit);
    }
    Map<String, Integer> reasons = new TreeMap<>();
    for (int code : codes.values()) {
      reasons.put("MPC_" + NativeBindings.failure(code, "").reason(), code);
    }
    assertThat(reasons).isEqualTo(codes).hasSize(MpcException.Reason.values().length);
  }

  @Test
  void structs_have_the_same_fields_and_sizes() {
    Map<String, StructLayout> structs = new TreeMap<>();
    Matcher m =
        Pattern.compile("typedef struct (\\w+) \\{([^}]*)\\} \\1;", Pattern.DOTALL).matcher(header);
    while (m.find()) {
      List<MemoryLayout> fields = new ArrayList<>();
      for (String field : m.group(2).split(";")) {
        if (!field.isBlank()) {
          fields.add(type(field).withName(name(field)));
        }
      }
      structs.put(m.group(1), MemoryLayout.structLayout(fields.toArray(MemoryLayout[]::new)));
    }
    assertThat(structs)
        .isEqualTo(Map.of("mpc_view", NativeBindings.VIEW, "mpc_buffer", NativeBindings.BUFFER));
    assertThat(NativeBindings.VIEW.byteSize()).isEqualTo(16);
  }

  @Test
  void functions_have_the_same_parameters() {
    Map<String, FunctionDescriptor> functions = new TreeMap<>();
    Matcher m =
        Pattern.compile("(int32_t|mpc_code|void)\\s+(mpc_\\w+)\\(([^)]*)\\);").matcher(header);
    while (m.find()) {
      List<MemoryLayout> parameters = new ArrayList<>();
      for (String parameter : m.group(3).split(",")) {
        if (!parameter.strip().equals("void")) {
          parameters.add(type(parameter));
        }
      }
      MemoryLayout[] types = parameters.toArray(MemoryLayout[]::new);
      functions.put(
          m.group(2),
          m.group(1).equals("void")
              ? FunctionDescriptor.ofVoid(types)
              : FunctionDescriptor.of(ValueLayout.JAVA_INT, types));
    }
    assertThat(functions).isEqualTo(NativeBindings.FUNCTIONS);
  }

  private static MemoryLayout type(String declaration) {
    String type = declaration.strip().replaceAll("\\w+$", "").strip();
    if (type.endsWith("*")) {
      return ValueLayout.ADDRESS;
    }
    return switch (type) {
      case "mpc_view" -> NativeBindings.VIEW;
      case "size_t" -> ValueLayout.JAVA_LONG;
      case "uint32_t", "int32_t" -> ValueLayout.JAVA_INT;
      default -> throw new AssertionError("type not known to the binding: " + declaration);
    };
  }

  private static String name(String declaration) {
    return declaration.strip().replaceAll(".*?(\\w+)$", "$1");
  }
}
